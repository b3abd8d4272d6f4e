package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wellFormed fails the test if a chart is not well-formed XML. It returns the chart's
// texts.
func wellFormed(t *testing.T, svg string) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
}

func days(n int) (labels []string) {
	for i := range n {
		labels = append(labels, string(rune('A'+i%26)))
	}
	return labels
}

func TestPicturesSayWhatTheyShow(t *testing.T) {
	c := Chart{ID: "calls", Title: "Calls <per day>", Labels: []string{"1 May", "2 May"}, Series: []Series{
		{Name: "answered", Values: []float64{1200, 3400}}, {Name: "failed", Kind: Bad, Values: []float64{0, 7}},
	}}
	for name, svg := range map[string]string{"bars": string(c.Bars()), "lines": string(c.Lines())} {
		text := strings.Join(wellFormed(t, svg), "|")
		for _, want := range []string{"Calls <per day>", "1 May", "2 May", "1k", "answered 3,400", "failed 7", "at most 3,400, 2 May"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %s", name, want, text)
			}
		}
		if strings.Contains(svg, "style=") {
			t.Errorf("%s: a style that a page's policy forbids: %s", name, svg)
		}
	}
	if rows := c.Rows(); len(rows) != 2 || rows[1].Label != "2 May" || strings.Join(rows[1].Cells, " ") != "3,400 7" {
		t.Errorf("rows %v", rows)
	}
}

// Charts of any numbers are well-formed, and nothing is drawn outside of the plot.
func TestPicturesOfOddNumbers(t *testing.T) {
	gap := math.NaN()
	for name, c := range map[string]Chart{
		"nothing":    {},
		"no series":  {Labels: days(3)},
		"too few":    {Labels: days(3), Series: []Series{{Values: []float64{1}}}},
		"too many":   {Labels: days(1), Series: []Series{{Values: []float64{1, 2, 3}}}},
		"gaps":       {Labels: days(4), Series: []Series{{Values: []float64{gap, 1, gap, gap}}}},
		"all gaps":   {Labels: days(2), Series: []Series{{Values: []float64{gap, gap}}}},
		"infinite":   {Labels: days(2), Series: []Series{{Values: []float64{math.Inf(1), math.Inf(-1)}}}},
		"negative":   {Labels: days(2), Series: []Series{{Values: []float64{-5, 3}}}},
		"tiny":       {Labels: days(2), Unit: Milliseconds, Series: []Series{{Values: []float64{1e-9, 0}}}},
		"vast":       {Labels: days(2), Series: []Series{{Values: []float64{1e18, 1}}}},
		"many":       {Labels: days(400), Series: make([]Series, 9)},
		"bytes":      {Labels: days(2), Unit: Bytes, Narrow: true, Series: []Series{{Values: []float64{3 << 30, 1}}}},
		"everything": {Labels: days(30), Series: []Series{{Values: make([]float64, 30)}}},
	} {
		c.ID = "odd"
		for _, svg := range []string{string(c.Bars()), string(c.Lines())} {
			wellFormed(t, svg)
			for _, bad := range []string{"NaN", "Inf", `"-`} {
				if strings.Contains(svg, bad) {
					t.Errorf("%s: %q is in %s", name, bad, svg)
				}
			}
			if n := strings.Count(svg, `class="grid"`) + strings.Count(svg, `class="axis"`); n < 2 || n > 6 {
				t.Errorf("%s: %d lines in the grid", name, n)
			}
		}
	}
}

var drawnLabel = regexp.MustCompile(`<text class="label[^"]*" x="[0-9.]+" y="206" text-anchor="middle">([0-9]+)</text>`)

// The labels of an axis are the same distance apart, and the last position has one.
func TestAxisIsEven(t *testing.T) {
	for _, n := range []int{1, 2, 7, 14, 24, 30, 60, 90} {
		c := Chart{ID: "even", Labels: make([]string, n)}
		for i := range c.Labels {
			c.Labels[i] = strconv.Itoa(i)
		}
		var at []int
		for _, found := range drawnLabel.FindAllStringSubmatch(string(c.Bars()), -1) {
			i, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, i)
		}
		if len(at) == 0 || at[len(at)-1] != n-1 {
			t.Errorf("of %d positions, %v have labels, expected the last one to have one", n, at)
		}
		for i := 2; i < len(at); i++ {
			if at[i]-at[i-1] != at[1]-at[0] {
				t.Errorf("of %d positions, %v have labels, expected even distances", n, at)
			}
		}
	}
}

// Times are drawn on a logarithmic scale, so that small and large ones can be read.
func TestTimesAreLogarithmic(t *testing.T) {
	c := Chart{ID: "latency", Unit: Milliseconds, Labels: days(2), Series: []Series{{Values: []float64{.5, .5}}, {Values: []float64{50, 500}}}}
	text := strings.Join(wellFormed(t, string(c.Lines())), "|")
	for _, want := range []string{"|0.1 ms|", "|1 ms|", "|10 ms|", "|100 ms|", "|1 s|"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	d := &drawing{least: .1, most: 1000}
	if low, middle, high := d.y(.1), d.y(10), d.y(1000); low != bottom || middle != (top+bottom)/2 || high != top || d.y(0) != bottom {
		t.Errorf("0.1, 10 and 1000 are drawn at %v, %v, %v", low, middle, high)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		unit  Unit
		value float64
		short string
		exact string
	}{
		{Count, 0, "0", "0"}, {Count, 950, "950", "950"}, {Count, 1500, "1.5k", "1,500"}, {Count, 1234567, "1.23M", "1,234,567"},
		{Count, math.NaN(), "NaN", "–"},
		{Bytes, 0, "0 B", "0 B"}, {Bytes, 512, "512 B", "512 B"}, {Bytes, 1536, "1.5 KiB", "1.5 KiB"}, {Bytes, 300 << 20, "300 MiB", "300 MiB"}, {Bytes, math.NaN(), "NaN B", "–"},
		{Milliseconds, .025, "0.025 ms", "0.025 ms"}, {Milliseconds, .25, "0.25 ms", "0.25 ms"}, {Milliseconds, 2.345, "2.35 ms", "2.35 ms"}, {Milliseconds, 12.4, "12 ms", "12 ms"}, {Milliseconds, 1500, "1.5 s", "1.5 s"},
	} {
		if short := c.unit.Short(c.value); short != c.short {
			t.Errorf("%v is %q at an axis, expected %q", c.value, short, c.short)
		}
		if exact := c.unit.Exact(c.value); exact != c.exact {
			t.Errorf("%v is %q in a table, expected %q", c.value, exact, c.exact)
		}
	}
}
