package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"runtime/pprof"
	"time"

	"ashlar/family"
	"ashlar/internal/usage"
	"ashlar/kv"
)

// A meter reads what an import has used whenever another tenth of it is done.
type meter struct {
	store   kv.Store
	total   uint64 // transactions of the chain
	profile string // directory; empty: no profiles

	marks []mark
}

// mark is what had been used when a number of transactions had settled.
type mark struct {
	at           time.Time
	transactions uint64
	process      usage.Used
	resident     int64
	stored       kv.Stats
	collector    time.Duration
}

const header = "| part | transactions | µs/tx | collector | tx/s | MiB | at most | written | misses |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"

// measure runs an import and prints a line for each tenth.
func (m *meter) measure(progress func() family.Progress, run func() error) error {
	const look = 20 * time.Millisecond
	fmt.Print(header)
	m.mark(0)
	stop, err := m.startProfile("first")
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- run() }()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			m.tenth(progress().Transactions)
			return errors.Join(err, stop())
		case <-ticker.C:
		}
		settled := progress().Transactions
		if settled < uint64(len(m.marks))*m.total/parts || len(m.marks) == parts {
			continue
		}
		m.tenth(settled)
		if err = stop(); err != nil {
			return errors.Join(err, <-done)
		}
		stop = func() error { return nil }
		if len(m.marks) == parts {
			if stop, err = m.startProfile("last"); err != nil {
				return errors.Join(err, <-done)
			}
		}
	}
}

// tenth ends a tenth of the import.
func (m *meter) tenth(settled uint64) {
	before := m.marks[len(m.marks)-1]
	m.mark(settled)
	m.print(fmt.Sprintf("%d/%d", len(m.marks)-1, parts), before)
}

// compacted prints what the import took after the last tenth, and in all.
func (m *meter) compacted() {
	before := m.marks[len(m.marks)-1]
	m.mark(before.transactions)
	now := m.marks[len(m.marks)-1]
	fmt.Printf("\ncompaction: %v of processor time, %v\n", (now.process.Processor - before.process.Processor).Round(time.Millisecond*100), now.at.Sub(before.at).Round(time.Millisecond*100))
	fmt.Print("\n", header)
	m.print("all", m.marks[0])
}

// amplification prints how often each of the bytes on disk was written.
func (m *meter) amplification(disk int64) {
	last := m.marks[len(m.marks)-1]
	fmt.Printf("\n%d MiB on disk, %d bytes for each transaction; each byte was written %.2f times\n",
		disk>>20, disk/int64(max(last.transactions, 1)), float64(last.stored.WrittenBytes)/float64(max(disk, 1)))
}

func (m *meter) mark(settled uint64) {
	m.marks = append(m.marks, mark{time.Now(), settled, usage.Read(), resident(), m.store.Stats(), collector()})
}

// print prints what was used between a mark and the last one.
func (m *meter) print(part string, before mark) {
	now := m.marks[len(m.marks)-1]
	transactions := float64(max(now.transactions-before.transactions, 1))
	fmt.Printf("| %s | %d | %.1f | %.1f | %.0f | %d | %d | %.0f | %.3f |\n", part, now.transactions,
		float64((now.process.Processor-before.process.Processor).Microseconds())/transactions,
		float64((now.collector-before.collector).Microseconds())/transactions,
		transactions/now.at.Sub(before.at).Seconds(),
		now.resident>>20, now.process.PeakMemory>>20,
		float64(now.stored.WrittenBytes-before.stored.WrittenBytes)/transactions,
		float64(now.stored.CacheMisses-before.stored.CacheMisses)/transactions)
}

// startProfile begins a processor profile, if profiles are wanted. stop ends it, and writes a profile of
// what is in memory then.
func (m *meter) startProfile(name string) (stop func() error, err error) {
	if m.profile == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(m.profile, name+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(file.Close(), m.writeHeap(name))
	}, nil
}

// writeHeap writes a profile of what was in memory at the last collection.
func (m *meter) writeHeap(name string) error {
	file, err := os.Create(filepath.Join(m.profile, name+"-heap.pprof"))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close())
}

// collector returns the processor time of the garbage collector, without what it takes of
// processors that would be idle.
func collector() time.Duration {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(samples)
	seconds := samples[0].Value.Float64() - samples[1].Value.Float64()
	return time.Duration(seconds * float64(time.Second))
}

// resident returns the resident memory of this process in bytes; 0 if it is not known.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
