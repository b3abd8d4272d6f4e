// Package chart draws bar and line charts as SVG on the server, so that pages need no
// script to show them.
//
// Elements have classes instead of colours, so one style sheet covers light and dark mode:
// series1 to series6 for the series, and grid, label, minor and axis for the rest. Labels
// with the class minor can be hidden on a narrow screen, where text is larger in relation
// to the chart, though less so if the chart is narrow, which has the class half. Every chart
// has a title and a description, and all its numbers are also in the table that a page shows
// beside it ([Chart.Rows]).
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Chart holds one or more series of numbers over the same positions.
type Chart struct {
	ID     string // unique in the page
	Narrow bool   // it stands beside another one
	Title  string
	Unit   Unit
	Labels []string // one per position, from left to right
	Series []Series
}

// Series has one number per label of the chart. NaN and infinities are gaps.
type Series struct {
	Name   string
	Kind   Kind
	Values []float64
}

// Kind says what a series shows, which decides its colour.
type Kind int

// The kinds: one of several similar series, or something bad, or less so.
const (
	Plain Kind = iota
	Bad
	Warn
)

// Unit says how numbers are formatted.
type Unit int

// The units.
const (
	Count        Unit = iota // 1,234 in tables, 1.2k on the axis
	Milliseconds             // 0.25 ms, 1.2 s
	Bytes                    // 512 B, 1.2 MiB
)

// Dimensions, in units of the SVG's view box.
const (
	fullWidth     = 640.0
	narrowWidth   = 440.0
	height        = 216.0
	left          = 56.0        // of the plot; the labels of the axis are left of it
	top, bottom   = 14.0, 182.0 // of the plot
	baseline      = 206.0       // of the labels below the plot
	labelRoom     = 75.0        // minimum distance between two of them
	margin        = 22.0        // right of the plot, so that half of the last label fits
	seriesColours = 6
)

// Class returns the CSS class of a series, for charts and legends.
func (c Chart) Class(series int) string {
	switch c.Series[series].Kind {
	case Bad:
		return "bad"
	case Warn:
		return "warn"
	}
	return "series" + strconv.Itoa(series%seriesColours+1)
}

// Empty reports whether the chart has only gaps and zeros.
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

// Row is one position of the chart as a row of a table.
type Row struct {
	Label string
	Cells []string // one per series
}

// Rows returns the chart as a table.
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

// at returns the value at a position, or NaN for a gap.
func (s Series) at(i int) float64 {
	if i >= 0 && i < len(s.Values) && !math.IsInf(s.Values[i], 0) {
		return s.Values[i]
	}
	return math.NaN()
}

// width returns the width of the chart.
func (c Chart) width() float64 {
	if c.Narrow {
		return narrowWidth
	}
	return fullWidth
}

// drawing is a chart in progress.
type drawing struct {
	strings.Builder
	right float64 // of the plot
	chart Chart
	most  float64 // the value at the top of the plot
	least float64 // the value at its bottom on a logarithmic scale; 0 on a linear one
}

// draw draws the frame and calls content to draw the plot.
func (c Chart) draw(most float64, content func(*drawing)) template.HTML {
	step := c.Unit.step(most)
	d := &drawing{right: c.width() - margin, chart: c, most: math.Max(step, math.Ceil(most/step)*step)}
	var grid []float64
	for value := 0.0; value <= d.most+step/2; value += step {
		grid = append(grid, value)
	}
	return d.frame(grid, content)
}

// drawDecades is draw on a logarithmic scale, with a grid line at each power of ten from least
// or below to most or above, or at some of them if they are many.
func (c Chart) drawDecades(least, most float64, content func(*drawing)) template.HTML {
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	high = math.Max(high, low+1)
	every := math.Ceil((high - low) / 5)
	high = low + math.Ceil((high-low)/every)*every
	d := &drawing{right: c.width() - margin, chart: c, least: math.Pow(10, low), most: math.Pow(10, high)}
	var grid []float64
	for power := low; power <= high; power += every {
		grid = append(grid, math.Pow(10, power))
	}
	return d.frame(grid, content)
}

// frame draws the grid, the labels and, with content, the plot.
func (d *drawing) frame(grid []float64, content func(*drawing)) template.HTML {
	c := d.chart
	id := template.HTMLEscapeString(c.ID)
	class := "chart"
	if c.Narrow {
		class = "chart half"
	}
	fmt.Fprintf(d, `<svg class="%s" viewBox="0 0 %g %g" role="img" aria-labelledby="%s-title %s-text">`, class, c.width(), height, id, id)
	fmt.Fprintf(d, `<title id="%s-title">%s</title><desc id="%s-text">%s</desc>`, id, template.HTMLEscapeString(c.Title), id, template.HTMLEscapeString(c.summary()))
	for i, value := range grid {
		y := d.y(value)
		class := "grid"
		if i == 0 {
			class = "axis"
		}
		fmt.Fprintf(d, `<line class="%s" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, class, left, d.right, y, y)
		fmt.Fprintf(d, `<text class="label" x="%g" y="%.1f" text-anchor="end" dominant-baseline="middle">%s</text>`, left-8, y, c.Unit.Short(value))
	}
	content(d)
	d.labels()
	d.WriteString(`</svg>`)
	return template.HTML(d.String())
}

// summary describes the chart in a sentence.
func (c Chart) summary() string {
	if len(c.Labels) == 0 || c.Empty() {
		return "No data in this period."
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

// y returns the y coordinate of a value.
func (d *drawing) y(value float64) float64 {
	if d.least > 0 {
		return bottom - (bottom-top)*math.Log10(math.Max(value, d.least)/d.least)/math.Log10(d.most/d.least)
	}
	return bottom - (bottom-top)*value/d.most
}

// slot returns the width of a position.
func (d *drawing) slot() float64 { return (d.right - left) / float64(max(1, len(d.chart.Labels))) }

// x returns the x coordinate at which a position begins.
func (d *drawing) x(i int) float64 { return left + float64(i)*d.slot() }

// labels draws the labels below the plot: the last, and as many before it as fit, at even
// distances. Every third one is not minor.
func (d *drawing) labels() {
	n := len(d.chart.Labels)
	every := roundDistance(labelRoom / d.slot())
	for i, label := range d.chart.Labels {
		back := n - 1 - i
		if back%every != 0 {
			continue
		}
		class := "label"
		if back/every%3 != 0 {
			class = "label minor"
		}
		fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%g" text-anchor="middle">%s</text>`, class, d.x(i)+d.slot()/2, baseline, template.HTMLEscapeString(label))
	}
}

// roundDistance returns how many positions are between two labels: at least so many, and a
// number that suits minutes, hours and days.
func roundDistance(least float64) int {
	for _, n := range []int{1, 2, 3, 4, 6, 7, 10, 14, 15, 20, 30, 60} {
		if float64(n) >= least {
			return n
		}
	}
	return int(math.Ceil(least))
}

// step returns a round distance between grid lines.
func (u Unit) step(most float64) float64 {
	if u == Count {
		return math.Ceil(roundStep(most)) // no fractions
	}
	if u != Bytes || most < 1024 || math.IsInf(most, 0) {
		return roundStep(most)
	}
	unit := math.Pow(1024, math.Floor(math.Log(most)/math.Log(1024)))
	return unit * roundStep(most/unit)
}

// roundStep returns a round distance between grid lines that gives two to four of them.
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
