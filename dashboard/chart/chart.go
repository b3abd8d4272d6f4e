// Package chart draws bars and lines as SVG, on the server, for pages that need no
// script to show them.
//
// A picture is drawn with classes in place of colours, so one style sheet decides
// how it looks in light and in dark: series1 to series6 are the series, grid, label,
// minor and axis the rest. Labels that may be left out on a narrow screen, where text
// is larger in relation to the picture, are minor. Every picture has a title and
// a description, and everything in it is in the table that a page shows beside it
// ([Chart.Rows]).
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Chart is rows of numbers over the same positions.
type Chart struct {
	ID     string // unique in its page
	Title  string
	Unit   Unit
	Labels []string // of the positions, from left to right
	Series []Series
}

// Series is one row of numbers, as many as the chart has labels. What is not a number
// is a gap.
type Series struct {
	Name   string
	Kind   Kind
	Values []float64
}

// Kind is what a series is about, and so its colour.
type Kind int

// The kinds: one of several alike, or something bad.
const (
	Plain Kind = iota
	Bad
)

// Unit is how numbers are written.
type Unit int

// The units.
const (
	Count        Unit = iota // 1,234 in tables, 1.2k at axes
	Milliseconds             // 0.25 ms, 1.2 s
)

// The picture's measures, in its own units.
const (
	width, height = 640.0, 216.0
	left          = 56.0        // of the plot; the axis' labels stand before it
	top, bottom   = 14.0, 182.0 // of the plot
	baseline      = 206.0       // of the labels below it
	labelRoom     = 75.0        // between two labels below it
	seriesColours = 6
)

// Class is the class of the series at a position, for pictures and legends.
func (c Chart) Class(series int) string {
	if c.Series[series].Kind == Bad {
		return "bad"
	}
	return "series" + strconv.Itoa(series%seriesColours+1)
}

// Empty says whether there is nothing but gaps and zeros.
func (c Chart) Empty() bool {
	for _, s := range c.Series {
		for _, v := range s.Values {
			if !math.IsNaN(v) && v != 0 {
				return false
			}
		}
	}
	return true
}

// Row is one position as a line of a table.
type Row struct {
	Label string
	Cells []string // a series each
}

// Rows is the chart as a table.
func (c Chart) Rows() []Row {
	rows := make([]Row, len(c.Labels))
	for i, label := range c.Labels {
		rows[i].Label = label
		for _, s := range c.Series {
			rows[i].Cells = append(rows[i].Cells, c.Unit.Exact(s.at(i)))
		}
	}
	return rows
}

// at is a value, a gap where there is none that can be drawn.
func (s Series) at(i int) float64 {
	if i < len(s.Values) && !math.IsInf(s.Values[i], 0) {
		return s.Values[i]
	}
	return math.NaN()
}

// drawing is a picture that is being drawn.
type drawing struct {
	strings.Builder
	chart Chart
	most  float64 // the value at the upper end of the plot
}

// draw draws the frame, and lets content draw what is in it.
func (c Chart) draw(most float64, content func(*drawing)) template.HTML {
	step := roundStep(most)
	d := &drawing{chart: c, most: math.Max(step, math.Ceil(most/step)*step)}
	id := template.HTMLEscapeString(c.ID)
	fmt.Fprintf(d, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-labelledby="%s-title %s-text">`, width, height, id, id)
	fmt.Fprintf(d, `<title id="%s-title">%s</title><desc id="%s-text">%s</desc>`, id, template.HTMLEscapeString(c.Title), id, template.HTMLEscapeString(c.summary()))
	for value := 0.0; value <= d.most+step/2; value += step {
		y := d.y(value)
		class := "grid"
		if value == 0 {
			class = "axis"
		}
		fmt.Fprintf(d, `<line class="%s" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, class, left, width, y, y)
		fmt.Fprintf(d, `<text class="label" x="%g" y="%.1f" text-anchor="end" dominant-baseline="middle">%s</text>`, left-8, y, c.Unit.Short(value))
	}
	content(d)
	d.labels()
	d.WriteString(`</svg>`)
	return template.HTML(d.String())
}

// summary is the picture in a sentence.
func (c Chart) summary() string {
	if len(c.Labels) == 0 || c.Empty() {
		return "Nothing in this time."
	}
	var parts []string
	for _, s := range c.Series {
		most, where := math.Inf(-1), 0
		for i := range c.Labels {
			if v := s.at(i); v > most {
				most, where = v, i
			}
		}
		if !math.IsInf(most, -1) {
			parts = append(parts, fmt.Sprintf("%s: at most %s, %s", s.Name, c.Unit.Exact(most), c.Labels[where]))
		}
	}
	return fmt.Sprintf("From %s to %s. %s.", c.Labels[0], c.Labels[len(c.Labels)-1], strings.Join(parts, "; "))
}

// y is the height of a value.
func (d *drawing) y(value float64) float64 { return bottom - (bottom-top)*value/d.most }

// slot is the width of a position.
func (d *drawing) slot() float64 { return (width - left) / float64(max(1, len(d.chart.Labels))) }

// x is where a position begins.
func (d *drawing) x(i int) float64 { return left + float64(i)*d.slot() }

// labels writes under the plot what its positions are: the first, the last, and as
// many between them as there is room for.
func (d *drawing) labels() {
	n := len(d.chart.Labels)
	every := (n + 6) / 7
	for i, label := range d.chart.Labels {
		class, anchor, x := "label minor", "middle", d.x(i)+d.slot()/2
		switch {
		case i == 0:
			class, anchor, x = "label", "start", left
		case i == n-1:
			class, anchor, x = "label", "end", width
		case i%every != 0 || float64(n-1-i)*d.slot() < labelRoom:
			continue
		}
		fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%g" text-anchor="%s">%s</text>`, class, x, baseline, anchor, template.HTMLEscapeString(label))
	}
}

// roundStep is a distance between lines of the grid that is round, for two to four of them.
func roundStep(most float64) float64 {
	if most <= 0 || math.IsNaN(most) || math.IsInf(most, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, round := range []float64{.25, .5, 1, 2.5} {
		if step := round * power; most/step <= 4 {
			return step
		}
	}
	return 5 * power
}
