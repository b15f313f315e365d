"""What the papers print, beside ours."""
