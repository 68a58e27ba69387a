"""Benchmarks: one module a workload, figures as JSON lines, compared with a kept baseline as ratios."""
