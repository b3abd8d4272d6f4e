package profile

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// quietZone is the margin that the standard requires, in modules.
const quietZone = 4

// qrCode draws a text as a QR code. It is an SVG within the page, because pages load no images
// that are made for one visitor.
func qrCode(text, label string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M, qr.Unicode)
	if err != nil {
		return "", fmt.Errorf("QR code: %w", err)
	}
	size := code.Bounds().Dx()
	var path strings.Builder
	for y := range size {
		for x := range size {
			if red, _, _, _ := code.At(x, y).RGBA(); red == 0 {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quietZone, y+quietZone)
			}
		}
	}
	side := size + 2*quietZone
	return template.HTML(fmt.Sprintf(`<svg class="qr" viewBox="0 0 %d %d" role="img" aria-label="%s"><rect width="%d" height="%d"/><path d="%s"/></svg>`,
		side, side, template.HTMLEscapeString(label), side, side, path.String())), nil
}
