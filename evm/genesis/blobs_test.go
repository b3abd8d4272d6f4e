package genesis

import (
	"fmt"
	"strings"
	"testing"
)

// An entry of a named fork may repeat the schedule that the fork keeps, whatever BPO forks
// come at the same time or later.
func TestParseNamedBlobs(t *testing.T) {
	const (
		prague = `{"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716}`
		bpo1   = `{"target": 9, "max": 12, "baseFeeUpdateFraction": 5007716}`
		bpo3   = `{"target": 15, "max": 20, "baseFeeUpdateFraction": 5007716}`
	)
	for _, test := range []struct {
		name, times, entry string
		refused            bool
	}{
		{"Osaka before the first BPO fork", `"osakaTime": 40, "bpo1Time": 50`, `"osaka": ` + prague, false},
		{"Osaka at the first BPO fork", `"osakaTime": 40, "bpo1Time": 40`, `"osaka": ` + prague, false},
		{"Osaka at the first BPO fork, with its schedule", `"osakaTime": 40, "bpo1Time": 40`, `"osaka": ` + bpo1, false},
		{"Osaka with a schedule of later", `"osakaTime": 40, "bpo1Time": 50`, `"osaka": ` + bpo1, true},
		{"Amsterdam before a BPO fork", `"osakaTime": 40, "bpo1Time": 50, "amsterdamTime": 60, "bpo3Time": 70`, `"amsterdam": ` + bpo1, false},
		{"Amsterdam at a BPO fork", `"osakaTime": 40, "bpo1Time": 50, "amsterdamTime": 60, "bpo3Time": 60`, `"amsterdam": ` + bpo1, false},
		{"Amsterdam with a schedule of later", `"osakaTime": 40, "bpo1Time": 50, "amsterdamTime": 60, "bpo3Time": 70`, `"amsterdam": ` + bpo3, true},
		{"Amsterdam with a schedule of before", `"osakaTime": 40, "bpo1Time": 50, "amsterdamTime": 60`, `"amsterdam": ` + prague, true},
	} {
		schedule := fmt.Sprintf(`"blobSchedule": {"bpo1": %s, "bpo3": %s, %s}`, bpo1, bpo3, test.entry)
		file := replace(t, whole, `"pragueTime": 30,`, `"pragueTime": 30, `+test.times+", "+schedule+",")
		_, _, err := Parse([]byte(file))
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "differs from the schedule that is in force") {
			t.Errorf("%s: %v, expected an error: %t", test.name, err, test.refused)
		}
	}
}
