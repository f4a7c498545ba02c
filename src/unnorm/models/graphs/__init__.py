"""Exponential families of graphs: statistics by name, their change statistics, and a toggle sampler."""

from .model import GraphStatistics as GraphStatistics
from .registry import STATISTICS as STATISTICS
