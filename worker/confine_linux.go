package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// confine limits memory, files and system calls. The kernel enforces it from then on.
func confine() error {
	// If the machine is short of memory, a worker is the first to be ended.
	err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err != nil && !errors.Is(err, os.ErrPermission) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	startThreads()
	addresses, data, err := mapped(os.Getpid())
	if err != nil {
		return err
	}
	for resource, most := range map[int]uint64{
		unix.RLIMIT_DATA:   data + Memory,
		unix.RLIMIT_AS:     addresses + 4*Memory, // C reserves 64 MiB for each thread that allocates, and uses little of it
		unix.RLIMIT_NOFILE: 0,                    // no more than are open
		unix.RLIMIT_FSIZE:  0,
		unix.RLIMIT_CORE:   0,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit resource %d to %d: %w", resource, most, err)
		}
	}
	return filterCalls()
}

// threads is more than Go needs for work on two processors. How many it needs depends on how
// busy the machine is.
const threads = 16

// startThreads makes Go start threads, which it keeps. The stack of a thread is 8 MiB of
// memory that is mapped but not used: it must not be taken from the work's memory later.
func startThreads() {
	var running, all sync.WaitGroup
	running.Add(threads)
	for range threads {
		all.Go(func() {
			runtime.LockOSThread() // until all have a thread of their own
			defer runtime.UnlockOSThread()
			running.Done()
			running.Wait()
		})
	}
	all.Wait()
}

// usedUp reports whether a worker has less than half of its memory left.
func usedUp(pid int) bool {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &limit); err != nil {
		return true // it has ended
	}
	_, data, err := mapped(pid)
	return err != nil || data+Memory/2 > limit.Cur
}

// gone reports whether a process that was not waited for has ended: it has nothing mapped then.
func gone(pid int) bool {
	addresses, _, err := mapped(pid)
	return err != nil || addresses == 0
}

// mapped returns how many bytes of addresses a process has mapped, and how many of them
// are private and writable. Go maps far more than it uses, so limits must be counted from
// there.
func mapped(pid int) (addresses, data uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0, err
	}
	var resident, shared, code, library uint64
	if _, err := fmt.Sscan(string(text), &addresses, &resident, &shared, &code, &library, &data); err != nil {
		return 0, 0, fmt.Errorf("/proc/%d/statm: %w", pid, err)
	}
	page := uint64(os.Getpagesize())
	return addresses * page, data * page, nil
}

// allowedCalls are what Go's runtime needs, and what moves bytes through open pipes. All
// other system calls, such as those that open files, sockets and programs, fail.
var allowedCalls = []string{
	"read", "write", "readv", "writev", "pread64", "close", "lseek",
	"mmap", "munmap", "mprotect", "mremap", "madvise", "brk",
	"clone", "clone3", "exit", "exit_group", "futex", "set_robust_list", "rseq", "arch_prctl", "prctl", "membarrier", "restart_syscall",
	"gettid", "getpid", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "rt_sigtimedwait",
	"nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday", "timer_create", "timer_settime", "timer_delete", "setitimer",
	"sched_yield", "sched_getaffinity", "getrandom", "poll", "ppoll",
	"epoll_wait", "epoll_pwait", "epoll_ctl",
}

// conditionalCalls are calls that are allowed with some arguments only: signals to threads of the process pid itself, and
// flags of open files, but not whom a file sends a signal.
func conditionalCalls(pid int) (all []seccomp.NameWithConditions) {
	allow := func(name string, argument uint32, value int) {
		is := seccomp.Condition{Argument: argument, Operation: seccomp.Equal, Value: uint64(value)}
		all = append(all, seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{is}})
	}
	allow("tgkill", 0, pid)
	for _, command := range []int{unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL} {
		allow("fcntl", 1, command)
	}
	return all
}

// filterCalls makes the kernel refuse system calls that a worker does not need.
func filterCalls() error {
	known, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(slices.Clone(allowedCalls), func(name string) bool {
		_, ok := known.SyscallNames[name]
		return !ok // not every architecture has all of them
	})
	filter := seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: names, NamesWithCondtions: conditionalCalls(os.Getpid())}},
	}}
	if err := seccomp.LoadFilter(filter); err != nil {
		return err
	}
	return nil
}
