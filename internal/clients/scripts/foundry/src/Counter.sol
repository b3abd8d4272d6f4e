// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

contract Counter {
    uint256 public count;

    event Counted(uint256 count);

    constructor(uint256 first) {
        count = first;
    }

    function add(uint256 n) external {
        count += n;
        emit Counted(count);
    }
}
