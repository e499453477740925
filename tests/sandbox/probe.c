/* A program that tries what a hostile one would. It says what became of it on standard error, in the words of the C
 * library, and ends with 0 where it got through. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *attempt;

/* Ends with the outcome of a call that returns -1 where it fails. */
static int outcome(long result) {
    if (result == -1) {
        fprintf(stderr, "%s: %s\n", attempt, strerror(errno));
        return 1;
    }
    fprintf(stderr, "%s: done\n", attempt);
    return 0;
}

static int reads(const char *path) {
    char text[4096];
    int file = open(path, O_RDONLY);
    if (file == -1) return outcome(-1);
    ssize_t length = read(file, text, sizeof text);
    if (length > 0 && write(1, text, length) != length) return 1;
    return outcome(length);
}

static int writes(const char *path, long length) {
    static char text[65536];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file == -1) return outcome(-1);
    for (long done = 0; done < length; done += sizeof text)
        if (write(file, text, sizeof text) == -1) return outcome(-1);
    return outcome(0);
}

static int prints(int stream, long length) {
    static char text[65536];
    memset(text, 'x', sizeof text);
    for (long done = 0; done < length; done += sizeof text)
        if (write(stream, text, sizeof text) == -1) return 1;
    return 0;
}

static int born(long child) {
    if (child == 0) {
        (void)!write(1, "a child lives\n", 14);
        _exit(0);
    }
    return outcome(child);
}

static void *idle(void *argument) {
    pause();
    return argument;
}

static void *ends(void *argument) {
    return argument;
}

static int threads(long wanted) {
    long made = 0;
    pthread_t thread;
    for (; made < wanted; made++) {
        int error = pthread_create(&thread, NULL, idle, NULL);
        if (error) {
            errno = error;
            break;
        }
    }
    printf("%ld\n", made);
    return made == wanted ? 0 : outcome(-1);
}

static int one_thread(void) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, ends, NULL);
    errno = error;
    return error ? outcome(-1) : outcome(-pthread_join(thread, NULL));
}

static int eats(void) {
    for (;;) {
        char *part = malloc(1 << 20);
        if (!part) return outcome(-1);
        memset(part, 1, 1 << 20);
    }
}

/* As a program of Go takes memory: it reserves addresses, and maps memory over them. */
static int reserves(void) {
    size_t size = (size_t)4 << 30;
    char *place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return outcome(-1);
    char *memory = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) return outcome(-1);
    return 0;
}

static int descriptors(void) {
    for (int number = 0; number < 1024; number++)
        if (fcntl(number, F_GETFD) != -1) printf("%d\n", number);
    return 0;
}

static int opens(const char *path) {
    for (;;)
        if (open(path, O_RDONLY) == -1) return outcome(-1);
}

static int input(void) {
    char byte;
    struct stat found;
    if (fstat(0, &found) == -1) return outcome(-1);
    printf("%u:%u %zd\n", major(found.st_rdev), minor(found.st_rdev), read(0, &byte, 1));
    return 0;
}

static int steals(int process) {
    char text[16];
    struct iovec here = {text, sizeof text}, there = {(void *)environ, sizeof text};
    return outcome(process_vm_readv(process, &here, 1, &there, 1, 0));
}

/* System calls by name, with arguments that would do something. */
static int calls(const char *name, int process) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    char space[256] = {0};
    uint64_t clone_arguments[8] = {0};
    clone_arguments[4] = SIGCHLD;
    struct { const char *name; long number, one, two, three, four, five; } table[] = {
        {"add_key", SYS_add_key, (long)"user", (long)"a", (long)"b", 1, -3},
        {"bpf", SYS_bpf, 0, (long)space, sizeof space, 0, 0},
        {"chmod", SYS_fchmodat, AT_FDCWD, (long)".", 0777, 0, 0},
        {"chown", SYS_fchownat, AT_FDCWD, (long)".", 0, 0, 0},
        {"clone", SYS_clone, SIGCHLD, 0, 0, 0, 0},
        {"clone3", SYS_clone3, (long)clone_arguments, sizeof clone_arguments, 0, 0, 0},
        {"execveat", SYS_execveat, AT_FDCWD, (long)"/bin/sh", 0, 0, 0},
        {"io_uring_setup", SYS_io_uring_setup, 1, (long)space, 0, 0, 0},
        {"keyctl", SYS_keyctl, 0, -3, 0, 0, 0},
        {"kill", SYS_kill, process, 0, 0, 0, 0},
        {"kill-all", SYS_kill, -1, SIGKILL, 0, 0, 0},
        {"link", SYS_linkat, AT_FDCWD, (long)".", AT_FDCWD, (long)"other", 0},
        {"memfd_create", SYS_memfd_create, (long)"a", 0, 0, 0, 0},
        {"mknod", SYS_mknodat, AT_FDCWD, (long)"fifo", S_IFIFO | 0600, 0, 0},
        {"mount", SYS_mount, (long)"none", (long)".", (long)"tmpfs", 0, 0},
        {"name_to_handle_at", SYS_name_to_handle_at, AT_FDCWD, (long)".", (long)space, (long)space, 0},
        {"perf_event_open", SYS_perf_event_open, (long)space, 0, -1, -1, 0},
        {"personality", SYS_personality, 0xffffffff, 0, 0, 0, 0},
        {"pidfd_open", SYS_pidfd_open, process, 0, 0, 0, 0},
        {"prlimit", SYS_prlimit64, 0, RLIMIT_CORE, (long)&limit, 0, 0},
        {"prlimit-other", SYS_prlimit64, process, RLIMIT_CORE, 0, (long)&limit, 0},
        {"ptrace", SYS_ptrace, 16, process, 0, 0, 0},
        {"seccomp", SYS_seccomp, 0, 0, 0, 0, 0},
        {"setpgid", SYS_setpgid, 0, 0, 0, 0, 0},
        {"setsid", SYS_setsid, 0, 0, 0, 0, 0},
        {"setns", SYS_setns, 0, 0, 0, 0, 0},
        {"setuid", SYS_setuid, 0, 0, 0, 0, 0},
        {"shmget", SYS_shmget, 0, 4096, 01600, 0, 0},
        {"socket", SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0},
        {"socket-datagram", SYS_socket, AF_INET6, SOCK_DGRAM, 0, 0, 0},
        {"socket-netlink", SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, 0},
        {"socket-unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, 0},
        {"socket-raw", SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP, 0, 0},
        {"socket-vsock", SYS_socket, AF_VSOCK, SOCK_STREAM, 0, 0, 0},
        {"socketpair", SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (long)space, 0},
        {"symlink", SYS_symlinkat, (long)"/etc", AT_FDCWD, (long)"link", 0, 0},
        {"tgkill", SYS_tgkill, process, process, 0, 0, 0},
        {"truncate", SYS_truncate, (long)"file", 0, 0, 0, 0},
        {"unshare", SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0},
        {"userfaultfd", SYS_userfaultfd, 0, 0, 0, 0, 0},
        {"vm_readv", SYS_process_vm_readv, process, (long)space, 0, (long)space, 0},
        {"xattr", SYS_setxattr, (long)".", (long)"user.a", (long)"b", 1, 0},
    };
    for (size_t number = 0; number < sizeof table / sizeof *table; number++)
        if (!strcmp(name, table[number].name)) {
            long result = syscall(table[number].number, table[number].one, table[number].two, table[number].three,
                                  table[number].four, table[number].five);
            return strncmp(name, "clone", 5) ? outcome(result) : born(result);
        }
    fprintf(stderr, "%s: no such call\n", name);
    return 2;
}

/* Connects to a port of this host. */
static int connects(int port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection == -1) return outcome(-1);
    return outcome(connect(connection, (struct sockaddr *)&place, sizeof place));
}

/* Listens on a port of this host, or on any. */
static int listens(int port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection == -1) return outcome(-1);
    if (bind(connection, (struct sockaddr *)&place, sizeof place) == -1) return attempt = "bind", outcome(-1);
    return outcome(listen(connection, 1));
}

/* A call of the machine's older form, with numbers of its own. */
static int foreign(void) {
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    return outcome(result);
#else
    raise(SIGSYS);
    return 1;
#endif
}

static int limits(void) {
    struct { const char *name; int number; } table[] = {
        {"memory", RLIMIT_DATA}, {"processor", RLIMIT_CPU}, {"file", RLIMIT_FSIZE},
        {"descriptors", RLIMIT_NOFILE}, {"core", RLIMIT_CORE},
    };
    for (size_t number = 0; number < sizeof table / sizeof *table; number++) {
        struct rlimit limit;
        if (getrlimit(table[number].number, &limit)) return outcome(-1);
        printf("%s %llu %llu\n", table[number].name, (unsigned long long)limit.rlim_cur,
               (unsigned long long)limit.rlim_max);
    }
    return 0;
}

/* Becomes a program for which the kernel is one without Landlock. */
static int without_landlock(char **command) {
    /* Landlock's calls have the same numbers on each machine: 444, 445 and 446. */
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 446, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof rules / sizeof *rules, .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return outcome(-1);
    return outcome(execv(command[0], command));
}

int main(int count, char **words) {
    const char *act = count > 1 ? words[1] : "";
    const char *argument = count > 2 ? words[2] : "";
    long number = count > 3 ? atol(words[3]) : atol(argument);
    attempt = act;
    if (!strcmp(act, "read")) return reads(argument);
    if (!strcmp(act, "write")) return writes(argument, number);
    if (!strcmp(act, "mkdir")) return outcome(mkdir(argument, 0700));
    if (!strcmp(act, "unlink")) return outcome(unlink(argument));
    if (!strcmp(act, "print")) return prints(1, number);
    if (!strcmp(act, "complain")) return prints(2, number);
    if (!strcmp(act, "exec")) return outcome(execl(argument, argument, "-c", "echo a shell runs", NULL));
    if (!strcmp(act, "fork")) return born(fork());
    if (!strcmp(act, "vfork")) return born(vfork());
    if (!strcmp(act, "system")) return outcome(system("echo a shell runs") == 0 ? 0 : -1);
    if (!strcmp(act, "thread")) return one_thread();
    if (!strcmp(act, "threads")) return threads(number);
    if (!strcmp(act, "eat")) return eats();
    if (!strcmp(act, "reserve")) return reserves();
    if (!strcmp(act, "open")) return opens(argument);
    if (!strcmp(act, "descriptors")) return descriptors();
    if (!strcmp(act, "input")) return input();
    if (!strcmp(act, "limits")) return limits();
    if (!strcmp(act, "steal")) return steals(number);
    if (!strcmp(act, "call")) return attempt = argument, calls(argument, number);
    if (!strcmp(act, "connect")) return connects(atoi(argument));
    if (!strcmp(act, "listen")) return listens(atoi(argument));
    if (!strcmp(act, "chmod")) return outcome(chmod(argument, 0777));
    if (!strcmp(act, "foreign")) return foreign();
    if (!strcmp(act, "without-landlock") && count > 2) return without_landlock(words + 2);
    if (!strcmp(act, "spin")) for (;;) {}
    if (!strcmp(act, "stay")) {
        for (int signal_number = 1; signal_number < 65; signal_number++) signal(signal_number, SIG_IGN);
        for (;;) pause();
    }
    if (!strcmp(act, "environment")) {
        for (char **variable = environ; *variable; variable++) puts(*variable);
        return 0;
    }
    if (!strcmp(act, "exit")) return number;
    fprintf(stderr, "no such act: %s\n", act);
    return 2;
}
