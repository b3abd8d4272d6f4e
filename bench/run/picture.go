package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
)

// Dimensions of the chart, in its own units.
const (
	pictureWidth = 760
	pictureLeft  = 300 // for the names
	pictureTop   = 64
	pictureRight = 60 // for the last bar's figure
	rowHeight    = 22
	barHeight    = 14
)

// pictureHead begins an SVG file for light and dark pages.
const pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s" font-family="system-ui, sans-serif" font-size="12">
<style>
text { fill: #24292f } .note { fill: #57606a } .grid { stroke: #d0d7de } .even { stroke: #57606a } .bar { fill: #2f6f8f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .note { fill: #9198a1 } .grid { stroke: #30363d } .even { stroke: #9198a1 } .bar { fill: #6cb2d1 }
}
</style>
<text x="0" y="18" font-size="15" font-weight="600">%[3]s</text>
<text x="0" y="36" class="note">%[4]s</text>
`

// draw writes a bar chart of Ashlar's rate as a multiple of the next peer's, for each kind of
// single request, on a logarithmic scale.
func (r results) draw(file string) error {
	if len(r.Peers) < 2 {
		return errors.New("draw the chart: there is no peer to compare with")
	}
	own, peer := r.Peers[0].Name, r.Peers[1].Name
	type bar struct {
		name  string
		ratio float64
	}
	var bars []bar
	most := 2.0
	for _, m := range r.Kinds {
		if m.Section != sections()["single"].name || m.rate(peer) == 0 || m.unlike(own, peer) {
			continue
		}
		bars = append(bars, bar{m.Kind, m.rate(own) / m.rate(peer)})
		most = max(most, bars[len(bars)-1].ratio)
	}
	width := float64(pictureWidth - pictureLeft - pictureRight)
	x := func(ratio float64) float64 {
		return pictureLeft + width*math.Log(max(ratio, 0.5)/0.5)/math.Log(most/0.5)
	}
	height := pictureTop + len(bars)*rowHeight + 8
	var b strings.Builder
	fmt.Fprintf(&b, pictureHead, pictureWidth, height, html.EscapeString("Requests per second: "+own+" / "+peer),
		html.EscapeString(fmt.Sprintf("%d blocks, %d transactions; one machine, the same requests, medians", r.Blocks, r.Transactions)))
	for _, at := range []float64{0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500} {
		if at > most {
			break
		}
		class := "grid"
		if at == 1 {
			class = "even"
		}
		fmt.Fprintf(&b, "<line x1=\"%.1[1]f\" x2=\"%.1[1]f\" y1=\"%[2]d\" y2=\"%[3]d\" class=\"%[4]s\"/><text x=\"%.1[1]f\" y=\"%[5]d\" text-anchor=\"middle\" class=\"note\">%[6]g</text>\n",
			x(at), pictureTop-4, height-8, class, pictureTop-10, at)
	}
	for i, bar := range bars {
		y := pictureTop + i*rowHeight
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\" class=\"bar\"/><text x=\"%.1f\" y=\"%d\">%.3g</text>\n",
			pictureLeft-10, y+barHeight-2, html.EscapeString(bar.name), min(x(1), x(bar.ratio)), y, math.Abs(x(bar.ratio)-x(1)), barHeight,
			max(x(1), x(bar.ratio))+6, y+barHeight-2, bar.ratio)
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
