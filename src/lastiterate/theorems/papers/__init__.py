"""The papers' own theorems, corrected where they are wrong; `account` tries few of them, which others do not replace."""
