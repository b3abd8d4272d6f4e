package main

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ashlar/internal/node"
)

// peer is a server that is measured. Unknown figures are 0: of a peer given by URL alone only the
// answers are measured.
type peer struct {
	Name          string  `json:"name"`
	ImportSeconds float64 `json:"importSeconds,omitempty"`
	ImportCPU     float64 `json:"importCPUSeconds,omitempty"`
	ImportMemory  int64   `json:"importPeakBytes,omitempty"`
	Disk          int64   `json:"diskBytes,omitempty"`
	Memory        int64   `json:"memoryAfterLoadBytes,omitempty"`

	client  *node.Client
	socket  string        // URL for WebSocket; empty: not measured over WebSocket
	process *node.Process // nil: another program started it
	pid     node.PID      // of its process; 0: unknown
	bin     string        // path of the program; set for Ashlar only
}

// transport is how requests reach a server.
type transport int

const (
	byWrk    transport = iota // HTTP, by wrk
	byHTTP                    // HTTP, by the generator, to compare with bySocket
	bySocket                  // WebSocket, by the generator
)

// suffix returns what is appended to a kind's name for this transport.
func (t transport) suffix() string {
	switch t {
	case byHTTP:
		return ", HTTP"
	case bySocket:
		return ", WebSocket"
	}
	return ""
}

// url returns the URL of a peer for this transport; empty: not measured with it.
func (t transport) url(p *peer) string {
	if t == bySocket {
		return p.socket
	}
	return p.client.URL
}

// startPeers imports the chain into each server, one after the other, and starts them all.
// On an error it also returns the servers that it has started.
func startPeers(ctx context.Context, o options, genesis, file string) (peers []*peer, err error) {
	p, err := startAshlar(ctx, o, genesis, file)
	if err != nil {
		return nil, err
	}
	peers = append(peers, p)
	for _, scheme := range []node.Scheme{node.HashScheme, node.PathScheme} {
		if !slices.Contains(o.geth, string(scheme)) {
			continue
		}
		p, err := startGeth(ctx, o, scheme, genesis, file)
		if p != nil {
			peers = append(peers, p)
		}
		if err != nil {
			return peers, err
		}
	}
	return append(peers, o.peers...), nil
}

func startAshlar(ctx context.Context, o options, genesis, file string) (*peer, error) {
	bin, err := node.BuildAshlar(ctx, o.work)
	if err != nil {
		return nil, err
	}
	p := &peer{Name: "Ashlar", bin: bin}
	a := node.Ashlar{Bin: bin, Data: filepath.Join(o.work, "ashlar-data"), Network: "bench"}
	if err := os.RemoveAll(a.Data); err != nil {
		return nil, err
	}
	process, err := a.Import(ctx, genesis, file)
	if err := p.measureImport(process, err, a.Data); err != nil {
		return nil, err
	}
	if p.process, p.client, err = a.Serve(ctx); err != nil {
		return nil, err
	}
	p.socket = node.SocketURL(p.client.URL)
	return p, nil
}

// startGeth imports the chain into geth and starts it. On an error it also returns a server that
// runs.
func startGeth(ctx context.Context, o options, scheme node.Scheme, genesis, file string) (*peer, error) {
	bin, err := node.FindGeth()
	if err != nil {
		return nil, err
	}
	p := &peer{Name: "geth, " + string(scheme) + " archive"}
	g := node.Geth{Bin: bin, Data: filepath.Join(o.work, "geth-"+string(scheme)), Scheme: scheme}
	if err := os.RemoveAll(g.Data); err != nil {
		return nil, err
	}
	if err := g.Init(ctx, genesis); err != nil {
		return nil, err
	}
	process, err := g.Import(ctx, file)
	if err := p.measureImport(process, err, g.Data); err != nil {
		return nil, err
	}
	if p.process, p.client, err = g.Serve(ctx, 0); err != nil {
		return nil, err
	}
	p.socket = strings.Replace(p.client.URL, "http://", "ws://", 1)
	// Only now does geth index logs and transactions, in the background.
	log.Print(p.Name, ": waiting until its disk usage is stable")
	if p.Disk, err = settledSize(ctx, g.Data); err != nil {
		return p, fmt.Errorf("%s: %w", p.Name, err)
	}
	return p, nil
}

func (p *peer) measureImport(process *node.Process, err error, data string) error {
	log.Print(p.Name, ": importing")
	if err != nil {
		return err
	}
	usage, err := process.Wait()
	if err != nil {
		return err
	}
	p.ImportSeconds, p.ImportCPU, p.ImportMemory = usage.Wall.Seconds(), usage.CPU.Seconds(), usage.MaxRSS
	p.Disk, err = size(data)
	log.Printf("%s: imported in %.1f s, %.1f s of processor time, %d MiB on disk", p.Name, p.ImportSeconds, p.ImportCPU, p.Disk>>20)
	return err
}

// stop stops a server that this program started.
func (p *peer) stop() error {
	if p.process == nil {
		return nil
	}
	return p.process.Stop()
}

// size returns the number of bytes in the files below a folder.
func size(folder string) (total int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// settledSize returns a folder's size once it has not changed for a while.
func settledSize(ctx context.Context, folder string) (int64, error) {
	const quiet, tries = 5 * time.Second, 60
	last := int64(-1)
	for range tries {
		now, err := size(folder)
		if err == nil && now == last { // an error: a compaction has removed a file meanwhile
			return now, nil
		}
		last = now
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(quiet):
		}
	}
	return 0, fmt.Errorf("folder %s still grows after %v", folder, quiet*tries)
}
