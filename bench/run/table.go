package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	ashlar, others := r.Peers[0], r.Peers[1:]
	fmt.Fprintf(&b, "%d blocks, %d transactions; requests a second, medians\n\n", r.Blocks, r.Transactions)
	row := func(first string, cell func(*peer) string, ratio func(*peer) string, last string) {
		fmt.Fprintf(&b, "| %s | %s |", first, cell(ashlar))
		for _, p := range others {
			fmt.Fprintf(&b, " %s | %s |", cell(p), ratio(p))
		}
		fmt.Fprintf(&b, " %s |\n", last)
	}
	row("", func(p *peer) string { return p.Name }, func(*peer) string { return "ratio" }, "of a constant answer")
	row("---", func(*peer) string { return "---" }, func(*peer) string { return "---" }, "---")
	for _, m := range r.Kinds {
		cell := func(p *peer) string { return m.cell(p.Name) }
		ratio := func(p *peer) string {
			if m.Differs[p.Name] > 0 {
				return "not alike" // rates of different answers say nothing
			}
			return times(m.rate(ashlar.Name), m.rate(p.Name))
		}
		row(m.Kind, cell, ratio, times(m.rate(ashlar.Name), m.rate(constantName)))
	}
	figures := []struct {
		name, format string
		of           func(*peer) float64
	}{
		{"import", "%.1f s", func(p *peer) float64 { return p.ImportSeconds }},
		{"import, CPU", "%.1f s", func(p *peer) float64 { return p.ImportCPU }},
		{"import, most memory", "%.0f MiB", func(p *peer) float64 { return float64(p.ImportMemory) / (1 << 20) }},
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
		row(f.name, cell, func(p *peer) string { return times(f.of(ashlar), f.of(p)) }, "")
	}
	return b.String()
}

// cell is the rate, with a note where not all answers were good or alike.
func (m measured) cell(peer string) string {
	text := fmt.Sprintf("%.0f", m.rate(peer))
	if m.rate(peer) < 100 {
		text = fmt.Sprintf("%.1f", m.rate(peer))
	}
	failed := 0
	for _, l := range m.Rounds[peer] {
		failed += l.Errors
	}
	if failed > 0 {
		text += fmt.Sprintf(" (%d failed)", failed)
	}
	if n := m.Differs[peer]; n > 0 {
		text += fmt.Sprintf(" (%d of %d answers differ)", n, comparedAnswers)
	}
	return text
}

func times(a, b float64) string {
	if a == 0 || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f x", a/b)
}
