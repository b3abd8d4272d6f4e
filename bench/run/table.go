package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// results is everything that was measured.
type results struct {
	Started      time.Time  `json:"started"`
	Blocks       uint64     `json:"blocks"`
	Transactions int        `json:"transactions"`
	Peers        []*peer    `json:"peers"` // Ashlar first
	Kinds        []measured `json:"kinds"`
}

// write prints the table and writes the JSON file.
func (r results) write(w io.Writer, file string) error {
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	_, err = io.WriteString(w, r.markdown())
	return err
}

func (r results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d blocks, %d transactions\n", r.Blocks, r.Transactions)
	for _, section := range r.sections() {
		r.appendRates(&b, section)
	}
	for _, section := range []string{"single", "sockets", "busy"} {
		r.appendTimes(&b, sections()[section].name)
	}
	r.appendFigures(&b)
	return b.String()
}

// sections returns the names of the sections that were measured, in order.
func (r results) sections() (names []string) {
	for _, m := range r.Kinds {
		if !slices.Contains(names, m.Section) {
			names = append(names, m.Section)
		}
	}
	return names
}

// row appends a row of a table: a cell for each peer and, for all but Ashlar, a ratio.
func (r results) row(b *strings.Builder, first string, cell, ratio func(*peer) string, last string) {
	fmt.Fprintf(b, "| %s | %s |", first, cell(r.Peers[0]))
	for _, p := range r.Peers[1:] {
		fmt.Fprintf(b, " %s | %s |", cell(p), ratio(p))
	}
	fmt.Fprintf(b, " %s |\n", last)
}

func always(text string) func(*peer) string { return func(*peer) string { return text } }

// appendRates appends a section's table of median rates.
func (r results) appendRates(b *strings.Builder, section string) {
	beside := "of a constant answer"
	switch section {
	case sections()["ages"].name:
		beside = "of the newest blocks"
	case sections()["batches"].name, sections()["busy"].name:
		beside = "of single requests"
	case sections()["sockets"].name:
		beside = "of HTTP"
	}
	b.WriteByte('\n')
	r.row(b, section+" per second", func(p *peer) string { return p.Name }, always("ratio"), beside)
	r.row(b, "---", always("---:"), always("---:"), "---:")
	for _, m := range r.Kinds {
		if m.Section != section {
			continue
		}
		own := m.rate(r.Peers[0].Name)
		ratio := func(p *peer) string { return r.ratio(m, p, own, m.rate(p.Name)) }
		r.row(b, m.Kind, func(p *peer) string { return m.cell(p.Name) }, ratio, times(own, r.besideOf(m)))
	}
}

// ratio returns a / b, figures of Ashlar and of a peer, in either order: they are not comparable
// if the answers are not alike.
func (r results) ratio(m measured, p *peer, a, b float64) string {
	if m.unlike(r.Peers[0].Name, p.Name) {
		return "not alike"
	}
	return times(a, b)
}

// besideOf returns the rate with which the last column compares a kind's rate.
func (r results) besideOf(m measured) float64 {
	section, kind := "", m.Kind
	switch m.Section {
	case sections()["batches"].name, sections()["busy"].name:
		section = sections()["single"].name
	case sections()["ages"].name:
		section = m.Section
		for _, span := range sections()["ages"].spans {
			kind = strings.TrimSuffix(kind, ", "+span.name)
		}
		kind += ", " + newestSpan
	case sections()["sockets"].name:
		section = m.Section
		kind = strings.TrimSuffix(kind, bySocket.suffix())
		if kind == m.Kind {
			return 0 // this is HTTP
		}
		kind += byHTTP.suffix()
	default:
		return m.rate(constantName)
	}
	for _, other := range r.Kinds {
		if other.Section == section && other.Kind == kind {
			return other.rate(r.Peers[0].Name)
		}
	}
	return 0
}

// appendTimes appends a section's table of latencies and processor times.
func (r results) appendTimes(b *strings.Builder, section string) {
	if !slices.Contains(r.sections(), section) {
		return
	}
	b.WriteByte('\n')
	r.row(b, section+": p50 / p99 / processor time, µs", func(p *peer) string { return p.Name }, always("processor ratio"), "rounds differ by")
	r.row(b, "---", always("---:"), always("---:"), "---:")
	cpu := func(l load) float64 { return l.CPUMicros }
	for _, m := range r.Kinds {
		if m.Section != section {
			continue
		}
		cell := func(p *peer) string {
			text := fmt.Sprintf("%.0f / %.0f", m.median(p.Name, func(l load) float64 { return l.P50Micros }), m.median(p.Name, func(l load) float64 { return l.P99Micros }))
			if used := m.median(p.Name, cpu); used > 0 {
				text += fmt.Sprintf(" / %.0f", used)
			}
			return text
		}
		ratio := func(p *peer) string { return r.ratio(m, p, m.median(p.Name, cpu), m.median(r.Peers[0].Name, cpu)) }
		rates := m.sorted(r.Peers[0].Name, load.rate)
		spread := "–"
		if rates[0] > 0 {
			spread = fmt.Sprintf("%.0f %%", 100*(rates[len(rates)-1]/rates[0]-1))
		}
		r.row(b, m.Kind, cell, ratio, spread)
	}
}

// appendFigures appends the table of what is measured once for each server.
func (r results) appendFigures(b *strings.Builder) {
	b.WriteByte('\n')
	r.row(b, "", func(p *peer) string { return p.Name }, always("ratio"), "")
	r.row(b, "---", always("---:"), always("---:"), "---")
	figures := []struct {
		name, format string
		of           func(*peer) float64
	}{
		{"import", "%.1f s", func(p *peer) float64 { return p.ImportSeconds }},
		{"import, processor time", "%.1f s", func(p *peer) float64 { return p.ImportCPU }},
		{"import, peak memory", "%.0f MiB", func(p *peer) float64 { return float64(p.ImportMemory) / (1 << 20) }},
		{"disk", "%.0f MiB", func(p *peer) float64 { return float64(p.Disk) / (1 << 20) }},
		{"memory after the load", "%.0f MiB", func(p *peer) float64 { return float64(p.Memory) / (1 << 20) }},
	}
	for _, f := range figures {
		cell := func(p *peer) string {
			if f.of(p) == 0 {
				return "–"
			}
			return fmt.Sprintf(f.format, f.of(p))
		}
		r.row(b, f.name, cell, func(p *peer) string { return times(f.of(r.Peers[0]), f.of(p)) }, "")
	}
}

// cell returns the rate, with a note if answers differ from the first peer's or are errors,
// as they should be for calls that revert.
func (m measured) cell(peer string) string {
	if len(m.Rounds[peer]) == 0 {
		return "–"
	}
	text := fmt.Sprintf("%.0f", m.rate(peer))
	if m.rate(peer) < 100 {
		text = fmt.Sprintf("%.1f", m.rate(peer))
	}
	if failed, _ := m.failures(peer); failed > 0 {
		text += fmt.Sprintf(" (%d failed)", failed)
	}
	if n := m.Differs[peer]; n > 0 {
		text += fmt.Sprintf(" (%d of %d answers differ)", n, m.Compared)
	} else if share := m.Refused[peer]; share > 0 {
		text += fmt.Sprintf(" (%.0f %% errors)", 100*share)
	}
	return text
}

func times(a, b float64) string {
	if a == 0 || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f x", a/b)
}
