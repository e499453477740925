//! The clocks of other hosts, by which their records say when something was.

use std::time::Duration;

/// The largest difference of two hosts' clocks that widens nothing. Kerberos bears as much.
pub(in crate::engine) const MAX_CLOCK_SKEW: Duration = Duration::from_mins(5);
