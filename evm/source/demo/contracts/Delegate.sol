// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// What accounts of the demo delegate to (EIP-7702). Its storage and address are
/// those of the account that delegates.
contract Delegate {
    uint256 public pings; // slot 0 of the delegating account

    struct Call {
        address to;
        uint256 value;
        bytes data;
    }

    event Pinged(address indexed account, address indexed by, uint256 pings);
    event Received(address indexed account, uint256 value);

    error OnlyTheAccount(address caller);
    error CallFailed(uint256 index, bytes data);

    receive() external payable {
        emit Received(address(this), msg.value);
    }

    function ping() external {
        pings++;
        emit Pinged(address(this), msg.sender, pings);
    }

    /// Several calls in one transaction that the account sends to itself.
    function batch(Call[] calldata calls) external payable {
        if (msg.sender != address(this)) {
            revert OnlyTheAccount(msg.sender);
        }
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory data) = calls[i].to.call{value: calls[i].value}(calls[i].data);
            if (!ok) revert CallFailed(i, data);
        }
    }
}
