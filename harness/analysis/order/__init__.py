"""Lengths beyond exactness: near answers, and rows that are told apart."""
