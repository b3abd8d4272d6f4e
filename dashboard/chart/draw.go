package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Bars draws the series stacked, with one bar per position.
func (c Chart) Bars() template.HTML {
	most := 0.0
	for i := range c.Labels {
		sum := 0.0
		for _, s := range c.Series {
			sum += drawn(s.at(i))
		}
		most = math.Max(most, sum)
	}
	if c.Unit != Milliseconds {
		most = math.Max(most, 4) // no fractions on the axis
	}
	return c.draw(most, func(d *drawing) {
		for i := range c.Labels {
			d.bar(i)
		}
	})
}

// bar draws one position. Its tooltip covers the whole height.
func (d *drawing) bar(i int) {
	slot := d.slot()
	wide := math.Min(slot*.72, 44)
	x := d.x(i) + (slot-wide)/2
	fmt.Fprintf(d, `<g class="bar"><title>%s</title>`, template.HTMLEscapeString(d.tooltip(i)))
	fmt.Fprintf(d, `<rect class="hover" x="%.1f" y="%g" width="%.1f" height="%g"/>`, d.x(i), top, slot, bottom-top)
	base := 0.0
	for n, s := range d.chart.Series {
		value := drawn(s.at(i))
		if value == 0 {
			continue
		}
		high := math.Max(1.5, d.y(base)-d.y(base+value)) // small values stay visible
		fmt.Fprintf(d, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="1.5"/>`,
			d.chart.Class(n), x, d.y(base)-high, wide, high)
		base += value
	}
	d.WriteString(`</g>`)
}

// tooltip returns all values at a position.
func (d *drawing) tooltip(i int) string {
	parts := []string{d.chart.Labels[i]}
	for _, s := range d.chart.Series {
		parts = append(parts, s.Name+" "+d.chart.Unit.Exact(s.at(i)))
	}
	return strings.Join(parts, "\n")
}

// Lines draws each series as a line, interrupted at gaps. Times are drawn on a logarithmic
// scale, on which percentiles that are far apart can be read beside each other.
func (c Chart) Lines() template.HTML {
	most, least := 0.0, math.Inf(1)
	for _, s := range c.Series {
		for i := range c.Labels {
			if value := drawn(s.at(i)); value > 0 {
				most, least = math.Max(most, value), math.Min(least, value)
			}
		}
	}
	content := func(d *drawing) {
		for n := range c.Series {
			d.line(n)
		}
		for i := range c.Labels {
			fmt.Fprintf(d, `<g class="bar"><title>%s</title><rect class="hover" x="%.1f" y="%g" width="%.1f" height="%g"/></g>`,
				template.HTMLEscapeString(d.tooltip(i)), d.x(i), top, d.slot(), bottom-top)
		}
	}
	if c.Unit == Milliseconds && most > 0 {
		return c.drawDecades(math.Max(least, leastTime), most, content)
	}
	return c.draw(most, content)
}

// leastTime is the lowest start of an axis of times, in milliseconds. Shorter times are drawn
// there.
const leastTime = .01

func (d *drawing) line(n int) {
	class := d.chart.Class(n)
	var path strings.Builder
	command := byte('M')
	for i := range d.chart.Labels {
		value := d.chart.Series[n].at(i)
		if math.IsNaN(value) {
			command = 'M'
			continue
		}
		x, y := d.x(i)+d.slot()/2, d.y(drawn(value))
		fmt.Fprintf(&path, "%c%.1f %.1f", command, x, y)
		command = 'L'
		s := d.chart.Series[n]
		if alone := math.IsNaN(s.at(i-1)) && math.IsNaN(s.at(i+1)); alone { // it has no line
			fmt.Fprintf(d, `<circle class="%s" cx="%.1f" cy="%.1f" r="3.5"/>`, class, x, y)
		}
	}
	if path.Len() > 0 {
		fmt.Fprintf(d, `<path class="line %s" d="%s"/>`, class, path.String())
	}
}

// drawn returns a value as it is drawn: NaN for a gap, and never below the axis.
func drawn(value float64) float64 {
	if value > 0 {
		return value
	}
	return 0
}
