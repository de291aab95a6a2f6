-- SPDX-License-Identifier: Apache-2.0
local function tell(key) told = key end
-- #include common_view
-- #include common_settle
-- #include common_holders
local function next_token()
  last_token = math.max(last_token + 1, (now - TOKEN_EPOCH) * TOKENS_PER_MILLI)
  return last_token
end
-- #include apply_take
-- #include apply_give
carry_out = function(key, a, all)
  local ok, row = pcall(A[a] == 'a' and take or give, key, a, all)
  if ok then return row end
  local text = type(row) == 'table' and row.err or tostring(row)
  return find(text, 'OOM', 1, true) and {14} or {err = text}
end
