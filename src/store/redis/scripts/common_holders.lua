-- SPDX-License-Identifier: Apache-2.0
-- The holders as flat rows: owner, hold id, session, count, note, held for, expires in, foreign,
-- number of a permit.
-- -1 stands for an unknown or endless time.
local function holders(v, now, max)
  local rows = {}
  for i, h in ipairs(v.holds) do
    if i > max then break end
    rows[i] = {h.owner or v.owner, h.id, string.match(h.who, '\31(.*)$'), h.count, v.notes[h.id] or '', now - h.granted,
      h.deadline - now, 0, h.number or 0}
  end
  if v.foreign > 0 and #rows < max then
    rows[#rows + 1] = {v.owner, '', '', v.foreign, '', -1,
      v.foreign_until < math.huge and v.foreign_until - now or -1, 1, 0}
  end
  return rows
end
