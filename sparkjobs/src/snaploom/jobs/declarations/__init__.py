"""What a job works on: declarations in files, or the Bundle that the operator hands over."""
