package api

import (
	"fmt"
	"strings"
	"testing"

	"ashlar/evm/execute"
	"ashlar/parameter"
)

// kept counts calls that are not nil.
func kept(calls []*execute.Message) (count int) {
	for _, call := range calls {
		if call != nil {
			count++
		}
	}
	return count
}

func repeated(element string, count int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", count), ",") + "]"
}

// A request with too many calls is refused with their number, and keeps no more of them than another
// request: a call takes far more memory than {}.
func TestCallsAboveTheLimitAreNotKept(t *testing.T) {
	block := func(calls int) string { return `{"calls":` + repeated("{}", calls) + `}` }
	for _, test := range []struct{ blocks, refused string }{
		{repeated(block(5000), 2), "<nil>"},
		{repeated(block(4000), 5), "too many calls: 20000 > 10000"},
		{repeated(block(20_000), 1), "too many calls in block: 20000 > 5000"},
		{repeated("{}", 256), "<nil>"},
		{repeated("{}", 5000), "too many blocks"},
		{`[{"calls":` + repeated("{}", 6000) + `,"CALLS":` + repeated("{}", 5000) + `}]`, "too many calls: 11000 > 10000"},
		{strings.Replace(repeated("{}", 5000), "{}]", `{"calls":1}]`, 1), "[4999]: calls: non-array value, want an array"},
	} {
		s, err := parseSimulation([]byte(`{"blockStateCalls":` + test.blocks + `}`))
		if err == nil {
			err = s.check()
		}
		if got := fmt.Sprint(err); !strings.HasSuffix(got, test.refused) {
			t.Errorf("%.40s…: %v, want %s", test.blocks, got, test.refused)
		}
		count := 0
		for _, b := range s.blocks {
			count += kept(b.Calls)
		}
		if len(s.blocks) > execute.MaxSimulatedBlocks+1 || count > maxSimulatedCalls {
			t.Errorf("%.40s…: %d blocks with %d calls are kept", test.blocks, len(s.blocks), count)
		}
	}
	for _, test := range []struct{ withdrawals, refused string }{
		{repeated("{}", maxSimulatedWithdrawals), "<nil>"},
		{repeated("{}", 2*maxSimulatedWithdrawals), "too many withdrawals: 20000 > 10000"},
	} {
		s, err := parseSimulation([]byte(`{"blockStateCalls":[{"blockOverrides":{"withdrawals":` + test.withdrawals + `}}]}`))
		if err == nil {
			err = s.check()
		}
		if got := fmt.Sprint(err); got != test.refused {
			t.Errorf("withdrawals: %v, want %s", got, test.refused)
		}
		if all := s.blocks[0].Withdrawals; all[maxSimulatedWithdrawals-1] == nil || all[len(all)-1] != nil && len(all) > maxSimulatedWithdrawals {
			t.Errorf("of %d withdrawals the last one is %v", len(all), all[len(all)-1])
		}
	}
	bundle := func(calls int) string { return `{"transactions":` + repeated("{}", calls) + `}` }
	for _, test := range []struct{ bundles, refused string }{
		{repeated(bundle(5000), 2), "<nil>"},
		{repeated(bundle(4000), 5), "too many calls: 20000 > 10000"},
		{repeated("{}", 20_000), "empty bundles"},
		{`[` + bundle(1) + `,` + repeated("{}", 20_000)[1:], "too many calls: 10001 > 10000"},
	} {
		args := parameter.Read([]byte("["+test.bundles+"]"), 4, 1)
		q := readBundles(&args)
		err := args.Err
		if err == nil {
			err = q.check()
		}
		if got := fmt.Sprint(err); !strings.HasSuffix(got, test.refused) {
			t.Errorf("%.40s…: %v, want %s", test.bundles, got, test.refused)
		}
		count := 0
		for _, b := range q.bundles {
			count += kept(b.Calls)
		}
		if len(q.bundles) > maxManyCalls+1 || count > maxManyCalls {
			t.Errorf("%.40s…: %d bundles with %d calls are kept", test.bundles, len(q.bundles), count)
		}
	}
}

// trace_callMany looks at the number of its calls before it looks for their block.
func TestTracedCallsAboveTheLimit(t *testing.T) {
	for _, test := range []struct{ calls, refused string }{
		{repeated("[{},[]]", 20_000), "too many calls: 20000 > 10000"},
		{strings.Replace(repeated("[{},[]]", 20_000), "[]]]", "1]]", 1), "non-array value, want an array"},
	} {
		_, err := new(API).parityCallMany(t.Context(), []byte("["+test.calls+"]"), nil)
		if err == nil || !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%.40s…: %v, want %s", test.calls, err, test.refused)
		}
	}
}
