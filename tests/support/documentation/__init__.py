"""Pages and examples: what they contain, and how their commands are run."""
