package query

import (
	"cmp"
	"regexp"
	"strconv"

	"ashlar/upstream"
)

// shorten returns how many blocks the next request may have after a node has refused one. A
// limit of blocks holds for all requests; one of logs, or of time, for this filter.
func (c *Chain) shorten(refusal *upstream.NodeError, from, to uint64) uint64 {
	said := cmp.Or(allowedOf(refusal, from, to), (to-from+1)/2)
	if upstream.IsTooMuch(refusal) && !ofLogs.MatchString(refusal.Message+" "+string(refusal.Data)) {
		c.span.refused(said)
	}
	return said
}

// allowedOf is allowed for a number that is less than a range has; else it returns 0.
func allowedOf(refusal *upstream.NodeError, from, to uint64) uint64 {
	if said := allowed(refusal, from); said < to-from+1 {
		return said
	}
	return 0
}

var (
	// ofLogs matches refusals because of the number of logs, not of blocks.
	ofLogs         = regexp.MustCompile(`(?i)results|response|logs (matched|returned)|too many logs|timeout`)
	statedLimit    = regexp.MustCompile(`(?i)(?:range \d[\d,_]* exceeds (?:the )?limit of|maximum is set to|blocks distance:|blocks range, the limit is|requested blocks is) (\d[\d,_]{0,12})()`)
	suggestedRange = regexp.MustCompile(`\[0x([0-9a-fA-F]{1,16}), ?0x([0-9a-fA-F]{1,16})\]`)
	namedBlocks    = regexp.MustCompile(`(\d[\d,_]{0,12})([kK]?)[ -]*(?:block|range)|(?:range|limited to|maximum of|up to a?)[^0-9]{0,20}(\d[\d,_]{0,12})([kK]?)`)
)

// allowed returns how many blocks a refusal says that a request may have; 0: it does not say.
func allowed(refusal *upstream.NodeError, from uint64) uint64 {
	text := refusal.Message + " " + string(refusal.Data)
	if m := suggestedRange.FindStringSubmatch(text); m != nil {
		first, _ := strconv.ParseUint(m[1], 16, 64)
		last, _ := strconv.ParseUint(m[2], 16, 64)
		if first == from && last >= first {
			return last - first + 1
		}
		return 0
	}
	m := statedLimit.FindStringSubmatch(text)
	if m == nil {
		if m = namedBlocks.FindStringSubmatch(text); m == nil {
			return 0
		}
	}
	digits, thousand := m[1], m[2]
	if digits == "" {
		digits, thousand = m[3], m[4]
	}
	number := uint64(0)
	for _, c := range digits {
		if c >= '0' && c <= '9' {
			number = number*10 + uint64(c-'0')
		}
	}
	if thousand != "" {
		number *= 1000
	}
	return number
}
