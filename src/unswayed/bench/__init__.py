"""Benchmarks: many trainings from one grid file, and the tables made of them."""
