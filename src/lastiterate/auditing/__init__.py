"""The lower side: instances whose privacy loss is known exactly."""
