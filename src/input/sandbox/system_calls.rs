//! The sandbox around system calls: a list of those that a program may make.
//!
//! It has what the Go runtime and the C library need to read files, compute and print, with threads
//! of their own. Any other call fails with `EPERM`: sockets, new processes, other processes'
//! memory, mounts, keys, devices. `truncate` and its kin by path are not on it either, which older
//! Landlocks do not bound. A program with a network may make sockets of the internet protocols too,
//! and never listens.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use super::policy::NetworkReach;

/// System calls of every architecture, whatever their arguments.
const ALLOWED_SYSTEM_CALLS: [c_long; 79] = [
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Files. Landlock says which.
    libc::SYS_chdir,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fchdir,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_mkdirat,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_renameat2,
    libc::SYS_sendfile,
    libc::SYS_statx,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
    // Waiting.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_sched_yield,
    // Itself and its threads. `execve` is how it begins, and Landlock says of which file.
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getcpu,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_uname,
];

/// The older forms of these that an architecture has.
#[cfg(target_arch = "x86_64")]
const LEGACY_SYSTEM_CALLS: [c_long; 18] = [
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_wait,
    libc::SYS_getrlimit,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_time,
    libc::SYS_unlink,
];
/// `renameat`, which the C library does not name there and Go uses.
#[cfg(target_arch = "aarch64")]
const LEGACY_SYSTEM_CALLS: [c_long; 1] = [38];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const LEGACY_SYSTEM_CALLS: [c_long; 0] = [];

/// The calls of a program that asks servers: it connects, and accepts no connection.
const SOCKET_SYSTEM_CALLS: [c_long; 10] = [
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
];
/// The bits of a socket's type that say its kind; the others are flags.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// The calls that do nothing and report success: helm gives rights to all on each archive, and
/// Landlock does not bound whose rights are changed.
const FAKED_SYSTEM_CALLS: [c_long; 2] = [libc::SYS_fchmod, libc::SYS_fchmodat];
/// Its older form.
#[cfg(target_arch = "x86_64")]
const LEGACY_FAKED_SYSTEM_CALLS: [c_long; 1] = [libc::SYS_chmod];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_FAKED_SYSTEM_CALLS: [c_long; 0] = [];

/// `TCGETS`: asks a terminal for its settings, and whether it is one.
const TERMINAL_ATTRIBUTES_REQUEST: u64 = 0x5401;
/// `FIOCLEX`: closes a file when another program begins.
const CLOSE_ON_EXEC_REQUEST: u64 = 0x5451;

/// `PR_SET_VMA`: names a range of memory, for whoever looks at `/proc`. Go does it.
const NAME_MEMORY_OPTION: u64 = 0x5356_4d41;

/// The reason for a part of the sandbox that does not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum SeccompError {
    #[error("there is no list of system calls for this architecture")]
    Architecture,
    #[error("the kernel, the service or the container refuses it: {0}")]
    Refused(#[from] seccompiler::Error),
}

/// Bounds this process, and what it becomes, to these calls for ever.
pub(super) fn restrict(process: u32, network: &NetworkReach) -> Result<(), SeccompError> {
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| SeccompError::Architecture)?;
    for program in programs(process, network, target)? {
        seccompiler::apply_filter(&program)?;
    }
    Ok(())
}

/// Returns the filters, of which each only takes away.
fn programs(
    process: u32,
    network: &NetworkReach,
    target: TargetArch,
) -> Result<Vec<BpfProgram>, SeccompError> {
    let build = |rules, otherwise, matched| -> Result<BpfProgram, SeccompError> {
        let filter = SeccompFilter::new(rules, otherwise, matched, target);
        Ok(filter.and_then(BpfProgram::try_from).map_err(seccompiler::Error::from)?)
    };
    let listed = build(
        rules(process, network).map_err(seccompiler::Error::from)?,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
    )?;
    // Its flags lie in memory, where no filter sees them. The C library then takes the older form.
    let unseen = build(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
    )?;
    let mut programs = vec![unseen];
    if let NetworkReach::Ports(_) = network {
        let calls =
            FAKED_SYSTEM_CALLS.into_iter().chain(LEGACY_FAKED_SYSTEM_CALLS).map(|call| (call, Vec::new()));
        // Of two filters the one that allows less has the last word.
        programs.push(build(calls.collect(), SeccompAction::Allow, SeccompAction::Errno(0))?);
    }
    // The last one, as it allows no more filters.
    programs.push(listed);
    Ok(programs)
}

fn rules(
    process: u32,
    network: &NetworkReach,
) -> Result<BTreeMap<c_long, Vec<SeccompRule>>, seccompiler::BackendError> {
    let own = [(0, SeccompCmpOp::Eq, u64::from(process))];
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let bounded: [(c_long, Vec<SeccompRule>); 6] = [
        // Threads, and no processes.
        (libc::SYS_clone, vec![rule(&[(0, SeccompCmpOp::MaskedEq(thread), thread)])?]),
        (libc::SYS_kill, vec![rule(&own)?]),
        (libc::SYS_tgkill, vec![rule(&own)?]),
        // Limits are read and not set, and nobody else's.
        (libc::SYS_prlimit64, vec![rule(&[(0, SeccompCmpOp::Eq, 0), (2, SeccompCmpOp::Eq, 0)])?]),
        (libc::SYS_prctl, vec![rule(&[(0, SeccompCmpOp::Eq, NAME_MEMORY_OPTION)])?]),
        (
            libc::SYS_ioctl,
            vec![
                rule(&[(1, SeccompCmpOp::Eq, TERMINAL_ATTRIBUTES_REQUEST)])?,
                rule(&[(1, SeccompCmpOp::Eq, CLOSE_ON_EXEC_REQUEST)])?,
            ],
        ),
    ];
    let any = ALLOWED_SYSTEM_CALLS
        .into_iter()
        .chain(LEGACY_SYSTEM_CALLS)
        .chain([libc::SYS_clone3])
        .map(|call| (call, Vec::new()));
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = any.chain(bounded).collect();
    if let NetworkReach::Ports(_) = network {
        rules.insert(libc::SYS_socket, sockets()?);
        let allowed =
            SOCKET_SYSTEM_CALLS.into_iter().chain(FAKED_SYSTEM_CALLS).chain(LEGACY_FAKED_SYSTEM_CALLS);
        rules.extend(allowed.map(|call| (call, Vec::new())));
    }
    Ok(rules)
}

/// Returns the sockets that may be made: TCP and UDP. No other kind is, above all none of this host
/// alone, which Landlock does not bound.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let kinds = [libc::SOCK_STREAM, libc::SOCK_DGRAM].map(|kind| u64::from(kind.cast_unsigned()));
    let families = [libc::AF_INET, libc::AF_INET6].map(|family| u64::from(family.cast_unsigned()));
    let pairs = families.into_iter().flat_map(|family| kinds.map(|kind| [family, kind]));
    let of_pair = |[family, kind]: [u64; 2]| {
        rule(&[(0, SeccompCmpOp::Eq, family), (1, SeccompCmpOp::MaskedEq(SOCKET_TYPE_MASK), kind)])
    };
    pairs.map(of_pair).collect()
}

/// Returns a rule over arguments: the number of each, and what it is compared with.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, comparison, value)| {
        // A pointer counts with all bits, a number of 32 bits may have anything above it.
        let length = if *argument == 2 { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
        SeccompCondition::new(*argument, length, comparison.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_beyond_the_process_is_not_on_the_list() {
        let rules = rules(1, &NetworkReach::None).unwrap();
        let calls = [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_sendto,
            libc::SYS_socketpair,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_pidfd_getfd,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_keyctl,
            libc::SYS_memfd_create,
            libc::SYS_execveat,
            libc::SYS_truncate,
            libc::SYS_setpgid,
            libc::SYS_setsid,
            libc::SYS_symlinkat,
            libc::SYS_linkat,
            libc::SYS_mknodat,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
        ];
        let allowed = calls.into_iter().filter(|call| rules.contains_key(call));
        assert_eq!(allowed.collect::<Vec<_>>(), Vec::<c_long>::new());
    }

    #[test]
    fn what_reaches_beyond_with_some_arguments_is_bound_to_others() {
        let rules = rules(1, &NetworkReach::None).unwrap();
        let calls = [libc::SYS_clone, libc::SYS_kill, libc::SYS_tgkill, libc::SYS_prlimit64, libc::SYS_ioctl];
        for call in calls {
            assert!(rules.get(&call).is_some_and(|rules| !rules.is_empty()), "{call}");
        }
    }

    #[test]
    fn with_a_network_sockets_are_bound_to_kinds_and_nothing_listens() {
        let rules = rules(1, &NetworkReach::Ports(vec![443])).unwrap();
        assert_eq!(rules.get(&libc::SYS_socket).map(Vec::len), Some(4));
        assert!(rules.contains_key(&libc::SYS_connect));
        for call in [libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4, libc::SYS_socketpair] {
            assert!(!rules.contains_key(&call), "{call}");
        }
    }

    #[test]
    fn the_filters_are_built_for_each_architecture() {
        for target in [TargetArch::x86_64, TargetArch::aarch64] {
            let filters = programs(1, &NetworkReach::None, target).unwrap();
            let lengths = filters.iter().map(Vec::len).collect::<Vec<_>>();
            assert!(
                lengths.len() == 2 && lengths[0] > 4 && lengths[1] > ALLOWED_SYSTEM_CALLS.len(),
                "{lengths:?}"
            );
            assert_eq!(programs(1, &NetworkReach::Ports(vec![443]), target).unwrap().len(), 3);
        }
    }
}
