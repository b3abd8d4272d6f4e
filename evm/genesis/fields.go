package genesis

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
)

// fileRule is the shape of a genesis file.
func fileRule() rule {
	return object(map[string]field{
		"config":        {configRule(), true},
		"alloc":         {mapping(addressKey, accountRule()), true},
		"gasLimit":      {quantity64(), true},
		"difficulty":    {quantity256(), true},
		"nonce":         {quantity64(), false},
		"timestamp":     {quantity64(), false},
		"extraData":     {hexBytes(), false},
		"mixHash":       {fixedHex(common.HashLength), false},
		"coinbase":      {fixedHex(common.AddressLength), false},
		"number":        {quantity64(), false},
		"gasUsed":       {quantity64(), false},
		"parentHash":    {fixedHex(common.HashLength), false},
		"baseFeePerGas": {quantity256(), false},
		"excessBlobGas": {quantity64(), false},
		"blobGasUsed":   {quantity64(), false},
		"slotNumber":    {quantity64(), false},
	}, warn)
}

func accountRule() rule {
	return object(map[string]field{
		"balance": {quantity256(), true},
		"nonce":   {quantity64(), false},
		"code":    {hexBytes(), false},
		"storage": {mapping(wordKey, word()), false},
	}, warn)
}

func configRule() rule {
	fields := map[string]field{
		"chainId":                 {integer(256), true},
		"daoForkSupport":          {boolean, false},
		"terminalTotalDifficulty": {integer(256), false},
		"depositContractAddress":  {fixedHex(common.AddressLength), false},
		"enableUBTAtGenesis":      {boolean, false},
		"ethash":                  {ethashRule(), false},
		"clique":                  {cliqueRule(), false},
		"blobSchedule":            {blobScheduleRule(), false},
		"constantinopleFixBlock":  {integer(64), false}, // Besu's name of petersburgBlock

		// Older files have these, and no rule depends on them: go-ethereum passes
		// over them too. The yolo networks ended in 2021.
		"eip150Hash":                    {ignored, false},
		"ewasmBlock":                    {ignored, false},
		"yolov1Block":                   {ignored, false},
		"yolov2Block":                   {ignored, false},
		"yolov3Block":                   {ignored, false},
		"terminalTotalDifficultyPassed": {ignored, false},
	}
	for _, fork := range []string{
		"homestead", "daoFork", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg",
		"istanbul", "muirGlacier", "berlin", "london", "arrowGlacier", "grayGlacier", "mergeNetsplit",
	} {
		fields[fork+"Block"] = field{integer(64), false}
	}
	for _, fork := range []string{
		"shanghai", "cancun", "prague", "osaka", "bpo1", "bpo2", "bpo3", "bpo4", "bpo5", "amsterdam", "bogota", "ubt",
	} {
		fields[fork+"Time"] = field{integer(64), false}
	}
	return object(fields, strangeSetting)
}

// ethashRule: the difficulty that Besu can fix is refused block by block, since no
// block before the merge has it; after the merge it means nothing.
func ethashRule() rule { return object(nil, warn) }

// cliqueRule has the names of geth, and those that Besu gives the same numbers.
func cliqueRule() rule {
	return object(map[string]field{
		"period":             {integer(64), false},
		"epoch":              {integer(64), false},
		"blockPeriodSeconds": {integer(64), false},
		"epochLength":        {integer(64), false},
		"createEmptyBlocks":  {ignored, false}, // how a node makes blocks, not which are right
	}, warn)
}

func blobScheduleRule() rule {
	entry := object(map[string]field{
		"target":                {integer(31), true},
		"max":                   {integer(31), true},
		"baseFeeUpdateFraction": {integer(64), true},
	}, refuse)
	fields := make(map[string]field)
	for _, fork := range []string{"cancun", "prague", "osaka", "bpo1", "bpo2", "bpo3", "bpo4", "bpo5", "amsterdam", "bogota"} {
		fields[fork] = field{entry, false}
	}
	return object(fields, refuse)
}

// integer is a plain JSON number of at most so many bits, as geth's config has them.
func integer(bits int) rule {
	return scalar("a plain number of at most "+strconv.Itoa(bits)+" bits, not negative", func(text string, isString bool) bool {
		n, ok := new(big.Int).SetString(text, 10)
		return ok && !isString && n.Sign() >= 0 && n.BitLen() <= bits
	})
}

// quantity64 is a number in decimal or hexadecimal, as a string or bare.
func quantity64() rule {
	return scalar("a number of at most 64 bits, decimal or 0x…", func(text string, _ bool) bool {
		_, ok := math.ParseUint64(text)
		return ok && text != ""
	})
}

func quantity256() rule {
	return scalar("a number of at most 256 bits, decimal or 0x…, not negative", func(text string, _ bool) bool {
		n, ok := math.ParseBig256(text)
		return ok && text != "" && n.Sign() >= 0
	})
}

// hexBytes is a string of bytes; the empty string passes for no bytes, as in geth.
func hexBytes() rule {
	return scalar("bytes as 0x and pairs of hexadecimal digits", func(text string, isString bool) bool {
		return isString && new(hexutil.Bytes).UnmarshalText([]byte(text)) == nil
	})
}

func fixedHex(size int) rule {
	want := strconv.Itoa(size) + " bytes as 0x and " + strconv.Itoa(2*size) + " hexadecimal digits"
	return scalar(want, func(text string, isString bool) bool {
		return isString && hexutil.UnmarshalFixedText("field", []byte(text), make([]byte, size)) == nil
	})
}

// word is a value in storage, padded with zeroes on its left.
func word() rule {
	return scalar("up to 32 bytes as 0x and pairs of hexadecimal digits", func(text string, isString bool) bool {
		_, err := wordKey(text)
		return isString && err == nil
	})
}

// wordKey returns a storage key at its full length.
func wordKey(name string) (string, error) {
	digits := strings.TrimPrefix(name, "0x")
	if len(digits) > 2*common.HashLength || len(digits)%2 != 0 || !isHex(digits) {
		return "", errors.New("a storage key is up to 32 bytes as 0x and pairs of hexadecimal digits")
	}
	return "0x" + strings.Repeat("0", 2*common.HashLength-len(digits)) + strings.ToLower(digits), nil
}

// addressKey returns an address in lower case with its 0x, which a file may omit.
func addressKey(name string) (string, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(name, "0x"), "0X")
	if len(digits) != 2*common.AddressLength || !isHex(digits) {
		return "", errors.New("an account's address is 20 bytes as 40 hexadecimal digits")
	}
	return "0x" + strings.ToLower(digits), nil
}

func isHex(digits string) bool {
	return strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}
