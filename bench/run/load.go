package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"ashlar/internal/jsondiff"
	"ashlar/internal/node"
)

//go:embed requests.lua
var requestsLua []byte

// load is the measurement of one round.
type load struct {
	Requests   int     `json:"requests"`
	Seconds    float64 `json:"seconds"`
	Errors     int     `json:"errors"`            // connection errors, and HTTP statuses of 400 and above
	Refused    int     `json:"refused,omitempty"` // JSON-RPC errors; counted by our generator only
	P50Micros  float64 `json:"p50Microseconds"`
	P99Micros  float64 `json:"p99Microseconds"`
	AnswerSize float64 `json:"meanAnswerBytes"`           // including HTTP headers
	CPUMicros  float64 `json:"cpuMicroseconds,omitempty"` // of the server, for each call; 0 if unknown
	Calls      int     `json:"callsInEachRequest"`
}

// rate returns the calls answered per second.
func (l load) rate() float64 { return float64(l.Requests) * float64(l.Calls) / l.Seconds }

// refusedShare returns the share of answers that were errors.
func (l load) refusedShare() float64 { return float64(l.Refused) / float64(max(l.Requests, 1)) }

// measured is the measurement of one kind of request. By peer, the constant answer
// included, it holds all rounds, how many of the first answers differ from the first
// peer's, and the share of errors under load.
type measured struct {
	Section  string             `json:"section"`
	Kind     string             `json:"kind"`
	Rounds   map[string][]load  `json:"rounds"`
	Compared int                `json:"comparedAnswers"`
	Differs  map[string]int     `json:"answersUnlikeFirstPeer"`
	Refused  map[string]float64 `json:"errorsUnderLoad"`
}

// unlike reports whether a peer answers differently from the first one, or one of them fails
// to answer, so that their rates cannot be compared.
func (m measured) unlike(first, peer string) bool {
	const noise = 0.01 // peers get through different parts of the file
	_, ownFailures := m.failures(first)
	_, failures := m.failures(peer)
	return m.Differs[peer] > 0 || math.Abs(m.Refused[peer]-m.Refused[first]) > noise || max(ownFailures, failures) > noise
}

// failures returns how many of a peer's requests failed in all rounds, and the share of them.
// wrk counts those with a bad HTTP status as requests, too.
func (m measured) failures(peer string) (failed int, share float64) {
	requests := 0
	for _, l := range m.Rounds[peer] {
		failed += l.Errors
		requests += l.Requests
	}
	return failed, float64(failed) / float64(max(failed, requests, 1))
}

// median returns the median of a figure over a peer's rounds, the mean of the middle two if
// their number is even; 0 if there are none.
func (m measured) median(peer string, figure func(load) float64) float64 {
	all := m.sorted(peer, figure)
	if len(all) == 0 {
		return 0
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func (m measured) sorted(peer string, figure func(load) float64) (all []float64) {
	for _, l := range m.Rounds[peer] {
		all = append(all, figure(l))
	}
	slices.Sort(all)
	return all
}

// rate returns the median rate of a peer's rounds.
func (m measured) rate(peer string) float64 { return m.median(peer, load.rate) }

const (
	constantName = "constant answer"
	// comparedAnswers is how many answers of each kind are compared before the load, or all of
	// them if there are fewer.
	comparedAnswers = 50
	// fewAnswers is the number of answers per connection below which our generator
	// replaces wrk: wrk does not count requests that are unanswered when its time is up,
	// which matters when there are so few.
	fewAnswers = 4
)

// measure measures every peer with every file, and with them a server that sends the same
// few bytes to every request: the cost of HTTP on this machine.
func measure(ctx context.Context, o options, peers []*peer, files []requestFile) ([]measured, error) {
	script := filepath.Join(o.work, "requests.lua")
	if err := os.WriteFile(script, requestsLua, 0o644); err != nil {
		return nil, err
	}
	constant, stop, err := serveConstant(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	driven := append(slices.Clone(peers), &peer{Name: constantName, client: constant})
	var all []measured
	for len(files) > 0 {
		same := sameRequests(files)
		some, err := measureInTurns(ctx, o, script, peers, driven, files[:same])
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			log.Printf("%s, %s: Ashlar %.0f/s, constant answer %.0f/s", m.Section, m.Kind, m.rate(peers[0].Name), m.rate(constantName))
		}
		all, files = append(all, some...), files[same:]
	}
	return all, nil
}

// sameRequests returns how many of the first files have the same requests, for different
// transports.
func sameRequests(files []requestFile) int {
	for i, f := range files {
		if f.path != files[0].path {
			return i
		}
	}
	return len(files)
}

// measureInTurns measures every server with files of the same requests, in turn. A first round
// by our generator does not count. It finds the share of errors under load, and the servers
// that give so few answers that the generator, which waits for all answers, replaces wrk for
// them. The next round has the opposite order of servers and of files.
func measureInTurns(ctx context.Context, o options, script string, peers, driven []*peer, files []requestFile) (_ []measured, err error) {
	compared, differs, err := compare(ctx, peers, files[0].path)
	if err != nil {
		return nil, err
	}
	if files[0].neighbour {
		n := startNeighbour(ctx, o, peers[0].bin)
		defer func() { err = errors.Join(err, n.stop()) }()
	}
	all := make([]measured, len(files))
	for i, f := range files {
		all[i] = measured{Section: f.section, Kind: f.kind, Rounds: map[string][]load{}, Compared: compared, Differs: differs, Refused: map[string]float64{}}
	}
	slow := map[string]bool{}
	for round := range 1 + o.rounds {
		for i := range files {
			if round%2 == 1 {
				i = len(files) - 1 - i
			}
			for _, p := range driven {
				if files[i].transport.url(p) == "" {
					continue
				}
				l, err := files[i].drive(ctx, o, script, p, round == 0 || slow[p.Name])
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", p.Name, files[i].kind, err)
				}
				if round == 0 {
					slow[p.Name] = l.Requests < fewAnswers*o.connections
					all[i].Refused[p.Name] = l.refusedShare()
					continue
				}
				all[i].Rounds[p.Name] = append(all[i].Rounds[p.Name], l)
			}
		}
		slices.Reverse(driven)
	}
	return all, nil
}

// drive loads a server with the file, by our generator or else by wrk.
func (f requestFile) drive(ctx context.Context, o options, script string, p *peer, generated bool) (load, error) {
	if err := p.rest(ctx); err != nil {
		return load{}, err
	}
	l, err := p.driven(func() (load, error) {
		if f.transport == byWrk && !generated {
			return wrk(ctx, o, script, f.transport.url(p), f.path)
		}
		return generate(ctx, o, f.transport.url(p), f.path)
	})
	l.Calls = f.calls
	l.CPUMicros /= float64(max(l.Requests, 1)) * float64(l.Calls)
	return l, err
}

func generate(ctx context.Context, o options, url, file string) (load, error) {
	g, err := newGenerator(url, file)
	if err != nil {
		return load{}, err
	}
	return g.run(ctx, o.connections, time.Duration(o.seconds)*time.Second)
}

// wrk runs wrk against one server for one round.
func wrk(ctx context.Context, o options, script, url, file string) (load, error) {
	c := exec.CommandContext(ctx, "wrk", "-t1", fmt.Sprintf("-c%d", o.connections), fmt.Sprintf("-d%ds", o.seconds),
		"--timeout", "60s", "-s", script, url, "--", file)
	out, err := c.CombinedOutput()
	if err != nil {
		return load{}, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	var l load
	at := bytes.LastIndexByte(bytes.TrimSpace(out), '\n')
	if err := json.Unmarshal(out[at+1:], &l); err != nil {
		return load{}, fmt.Errorf("parse the output of wrk: %w\n%s", err, out)
	}
	return l, nil
}

// serveConstant serves a constant answer over HTTP until stop is called.
func serveConstant(ctx context.Context) (client *node.Client, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":"0x` + fmt.Sprintf("%064d", 0) + `"}`)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client is gone
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer) // an error means the client is gone
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return node.NewClient("http://" + listener.Addr().String()), func() { server.Close(); <-done }, nil
}

// compare counts the answers of each peer that differ from the first peer's, except for
// the totalDifficulty of blocks and the storage of failing steps. compared is how many it has
// looked at.
func compare(ctx context.Context, peers []*peer, file string) (compared int, differs map[string]int, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, nil, err
	}
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	lines = lines[:min(comparedAnswers, len(lines))]
	differs = map[string]int{}
	for _, line := range lines {
		var first any
		for i, p := range peers {
			_, answer, err := p.client.Post(ctx, line)
			if err != nil {
				return 0, nil, fmt.Errorf("%s: %w", p.Name, err)
			}
			v, err := jsondiff.Decode(answer)
			if err != nil {
				return 0, nil, fmt.Errorf("%s: decode the answer %.200q to %.300s: %w", p.Name, answer, line, err)
			}
			withoutKnownDifferences(v)
			if i == 0 {
				first = v
			} else if len(jsondiff.Values(first, v)) > 0 {
				differs[p.Name]++
			}
		}
	}
	return len(lines), differs, nil
}

// withoutKnownDifferences removes from an answer, or from each answer of a batch, members
// that depend on geth's version: the total difficulty of blocks, and the storage that
// traces show at a step that failed.
func withoutKnownDifferences(answer any) {
	switch answer := answer.(type) {
	case []any:
		for _, one := range answer {
			withoutKnownDifferences(one)
		}
	case map[string]any:
		result, _ := answer["result"].(map[string]any)
		delete(result, "totalDifficulty")
		steps, _ := result["structLogs"].([]any)
		for _, step := range steps {
			if step, ok := step.(map[string]any); ok && step["error"] != nil {
				delete(step, "storage")
			}
		}
	}
}
