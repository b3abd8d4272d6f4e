// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Transient storage (EIP-1153): what is noted is gone after the transaction.
contract Scratch {
    uint256 private transient depth;
    uint256 public deepest;

    event Depth(uint256 reached, uint256 left);

    /// Calls itself n times, counting in transient storage on the way down.
    function descend(uint256 n) external {
        depth++;
        if (n > 0) {
            this.descend(n - 1);
            return;
        }
        if (depth > deepest) {
            deepest = depth;
        }
        emit Depth(depth, n);
    }

    /// Always zero in a call of its own.
    function current() external view returns (uint256) {
        return depth;
    }
}
