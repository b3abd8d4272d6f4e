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
	said := cmp.Or(allowed(refusal, from, to), (to-from+1)/2)
	if upstream.IsTooMuch(refusal) && !ofLogs.MatchString(refusal.Message+" "+string(refusal.Data)) {
		c.span.refused(said)
	}
	return said
}

var (
	// ofLogs matches refusals because of the number of logs, not of blocks.
	ofLogs      = regexp.MustCompile(`(?i)results|response|logs (matched|returned)|too many logs|timeout`)
	statedLimit = regexp.MustCompile(`(?i)(?:range \(?\d[\d,_]*\)? exceeds (?:the )?(?:\w+ )?(?:limit|maximum)(?: of)?|maximum is set to|blocks distance:|blocks range, the limit is|requested blocks is|wide \(maximum|range: \d[\d,_]*, max:|maxAllowedRange":|narrow your filter:) ?\(?(\d[\d,_]{0,12})([kK]?)\b`)
	// suggestedRange matches a range of blocks, in hexadecimal (Infura, Alchemy) or decimal digits (reth).
	suggestedRange = regexp.MustCompile(`\[0x([0-9a-fA-F]{1,16}), ?0x([0-9a-fA-F]{1,16})\]|with the range (\d{1,19})-(\d{1,19})\b`)
	namedBlocks    = regexp.MustCompile(`(\d[\d,_]{0,12})([kK]?)[ -]*(?:block|range)|(?:range|limited to|maximum of|up to a?)[^0-9.]{0,20}(\d[\d,_]{0,12})([kK]?)`)
	// ofRequest matches the words after a number that is not a limit, but what was asked for.
	ofRequest = regexp.MustCompile(`(?i)^[)\]]?(?:[ -]*(?:blocks?|range))*(?: is| are| was| were)? (?:exceed|requested)`)
)

// allowed returns how many blocks a refusal says that a request may have; 0: it does not say. Some nodes name the length of the
// range that they refuse, or one block less, with or without the limit. So a number is taken only if it is at most half of
// that length, and the smallest one if there are several.
func allowed(refusal *upstream.NodeError, from, to uint64) uint64 {
	text := refusal.Message + " " + string(refusal.Data)
	if m := suggestedRange.FindStringSubmatch(text); m != nil {
		first, last := suggested(m)
		if first == from && last >= first && last < to {
			return last - first + 1
		}
		return 0
	}
	half := (to - from + 1) / 2
	return cmp.Or(smallest(statedLimit, text, half), smallest(namedBlocks, text, half))
}

// suggested returns the range that suggestedRange has matched.
func suggested(m []string) (first, last uint64) {
	base, from, to := 16, m[1], m[2]
	if from == "" {
		base, from, to = 10, m[3], m[4]
	}
	first, _ = strconv.ParseUint(from, base, 64)
	last, _ = strconv.ParseUint(to, base, 64)
	return first, last
}

// smallest returns the smallest number of blocks that the groups of an expression match in a text, or 0 if there is none
// up to most.
func smallest(expression *regexp.Regexp, text string, most uint64) uint64 {
	least := uint64(0)
	for _, at := range expression.FindAllStringSubmatchIndex(text, -1) {
		for group := 2; group+3 < len(at); group += 4 { // digits and thousands
			if at[group] < 0 || ofRequest.MatchString(text[at[group+3]:]) {
				continue
			}
			number := numberOf(text[at[group]:at[group+1]])
			if at[group+2] < at[group+3] {
				number *= 1000
			}
			if 0 < number && number <= most && (least == 0 || number < least) {
				least = number
			}
		}
	}
	return least
}

// numberOf returns the number that digits with separators mean.
func numberOf(digits string) (number uint64) {
	for _, c := range digits {
		if c >= '0' && c <= '9' {
			number = number*10 + uint64(c-'0')
		}
	}
	return number
}
