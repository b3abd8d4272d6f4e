// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Fails in each way that a contract can fail.
contract Faults {
    uint256 public survived;
    uint256[] private none;

    error Refused(address caller, uint256 code, string why);
    error Bare();

    event Caught(bytes data);

    function reason(string calldata why) external pure {
        revert(why);
    }

    function custom(uint256 code) external view {
        revert Refused(msg.sender, code, "as asked");
    }

    function customBare() external pure {
        revert Bare();
    }

    function empty() external pure {
        assembly {
            revert(0, 0)
        }
    }

    /// Revert data that decode as nothing known.
    function raw(bytes calldata data) external pure {
        bytes memory copy = data;
        assembly {
            revert(add(copy, 32), mload(copy))
        }
    }

    function panicAssert() external pure {
        assert(false);
    }

    function panicOverflow(uint256 x) external pure returns (uint256) {
        return x + type(uint256).max;
    }

    function panicDivision(uint256 x) external pure returns (uint256) {
        return 1 / x;
    }

    function panicIndex() external view returns (uint256) {
        return none[0];
    }

    function invalid() external pure {
        assembly {
            invalid()
        }
    }

    /// Runs until the gas is used up.
    function endless() external {
        for (;;) {
            survived++;
        }
    }

    /// Writes and logs first, so that there is something to take back.
    function late(uint256 code) external {
        survived++;
        emit Caught("never seen");
        revert Refused(msg.sender, code, "too late");
    }

    /// An inner call fails, the transaction does not.
    function caught(uint256 code) external {
        try this.late(code) {} catch (bytes memory data) {
            emit Caught(data);
        }
        survived++;
    }
}

/// A constructor that refuses: a creation with status 0 and no contract.
contract Stillborn {
    constructor() {
        revert("Stillborn: never to be");
    }
}
