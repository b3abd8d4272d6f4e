package genesis

import (
	"errors"
	"fmt"
	"strings"
)

// harmless are settings of other clients that no rule of the chain depends on, or whose
// rule is the same here: by name in lower case, why they may be ignored.
var harmless = map[string]string{
	"premergeforkblock":                   "names the merge for peers",
	"mergeforkblock":                      "names the merge for peers",
	"parisblock":                          "names the merge for peers",
	"terminalblockhash":                   "terminalTotalDifficulty says when the merge comes",
	"terminalblocknumber":                 "terminalTotalDifficulty says when the merge comes",
	"discovery":                           "is about finding peers",
	"checkpoint":                          "is about where a client begins to sync",
	"bootnodes":                           "is about finding peers",
	"withdrawalrequestcontractaddress":    "EIP-7002 fixes the address",
	"consolidationrequestcontractaddress": "EIP-7251 fixes the address",
	"contractsizelimit":                   "the limits of Ethereum hold: blocks that need others are refused",
	"evmstacksize":                        "the limits of Ethereum hold: blocks that need others are refused",
	"isdev":                               "is about how a client is run",
	"networkid":                           "is about finding peers",
}

// otherRule is a setting of chains whose blocks cannot be verified by Ethereum's rules.
type otherRule struct {
	what  string
	unset string // the JSON with which the setting means nothing; empty if any means something
}

var otherRules = map[string]otherRule{
	"ibft":         {"blocks sealed by IBFT", ""},
	"ibft2":        {"blocks sealed by IBFT 2.0", ""},
	"qbft":         {"blocks sealed by QBFT", ""},
	"aura":         {"blocks sealed by AuRa", ""},
	"parlia":       {"blocks sealed by Parlia", ""},
	"bor":          {"blocks sealed by Bor", ""},
	"transitions":  {"changes of validators", ""},
	"optimism":     {"the rules of the OP Stack", ""},
	"arbitrum":     {"the rules of Arbitrum", ""},
	"isquorum":     {"the rules of Quorum", "false"},
	"zerobasefee":  {"a base fee of zero", "false"},
	"fixedbasefee": {"a fixed base fee", "false"},
	"eccurve":      {"another elliptic curve", `"secp256k1"`},
}

// strangeSetting judges a setting of the config that go-ethereum does not have. One
// that may be a fork, or that names other rules, is refused: ignoring it would make
// another chain, which shows only at the first block that is different there. Others
// are ignored with a warning.
func strangeSetting(s *scanner, path, name string) error {
	lower := strings.ToLower(name)
	if why, ok := harmless[lower]; ok {
		return s.ignoreWith("a field of other clients; it is ignored: "+why, path, name)
	}
	if other, ok := otherRules[lower]; ok {
		raw, err := s.json.Raw()
		if err != nil {
			return err
		}
		if string(raw) == other.unset {
			return nil
		}
		return s.fault(join(path, name), fmt.Errorf("%s cannot be verified; want a chain with the rules of Ethereum", other.what))
	}
	if strings.HasSuffix(lower, "block") || strings.HasSuffix(lower, "time") {
		return s.fault(join(path, name), errors.New("looks like a fork, and is not known to this version; remove it if the chain has no such fork"))
	}
	return warn(s, path, name)
}
