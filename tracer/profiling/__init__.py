"""Profiles, logs and events: a program's events, their times, and the reasons for compilations."""
