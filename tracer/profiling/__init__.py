"""Profiles, logs and events: what a program did, when, and why it was compiled."""
