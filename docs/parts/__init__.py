"""The parts of the documentation that are written from the code, a module a subject."""
