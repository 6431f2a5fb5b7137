"""What an install may take. Which packages may be installed is for the lists to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallLimits:
    """For one language of one overlay."""

    max_bytes: int
    """what its packages may weigh together, unpacked"""
    timeout_s: float
    """for one install, from the plan to the last file"""
    min_age_days: int
    """how long a version must have been on the index: most packages that steal are found within days; 0 for no limit"""
