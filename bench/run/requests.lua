-- Posts the lines of a file in turn and prints the measurement as one line of JSON.
wrk.headers["Content-Type"] = "application/json"

local requests, at = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, nil, line)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%f,"errors":%d,"p50Microseconds":%f,"p99Microseconds":%f,"meanAnswerBytes":%f}\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99), summary.bytes / math.max(summary.requests, 1)))
end
