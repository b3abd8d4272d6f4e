package activity

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ashlar/dashboard/site"
)

// download serves the usage page's numbers as CSV, one row per day, hour or minute, and key,
// network and method.
func download(v *site.Visit) error {
	u, err := used(v)
	if err != nil {
		return err
	}
	header := v.W.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	header.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="ashlar-usage-%s.csv"`, u.time.from.Format(time.DateOnly)))
	layout := time.DateOnly
	if u.Each != "day" {
		layout = time.RFC3339
	}
	out := csv.NewWriter(v.W)
	_ = out.Write([]string{"start", "key", "key_name", "network", "method", "calls", "failed", "refused", "credits", "bytes", "milliseconds", "p95_milliseconds"}) // errors are sticky until Flush
	for _, one := range u.used {
		_ = out.Write([]string{
			one.Time.Format(layout), one.Key.String(), harmless(u.name(one.Key.String())), one.Network, harmless(one.Method),
			strconv.FormatUint(one.Requests, 10), strconv.FormatUint(one.Errors, 10), strconv.FormatUint((&tally{Counts: one.Counts}).refused(), 10),
			strconv.FormatUint(one.Credits, 10), strconv.FormatUint(one.Bytes, 10),
			strconv.FormatInt(one.Counts.Time.Milliseconds(), 10), strconv.FormatFloat(milliseconds(one.Quantile(.95)), 'f', 3, 64),
		})
	}
	out.Flush() // an error means that the client has disconnected
	return nil
}

// harmless prevents a spreadsheet from reading a text as a formula.
func harmless(text string) string {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		return "'" + text
	}
	return text
}
