-- SPDX-License-Identifier: Apache-2.0
-- The holders as flat rows: owner, hold id, session, count, note, held for, expires in, foreign.
-- -1 stands for an unknown or endless time.
local function holders(v, now)
  local rows = {}
  for i, h in ipairs(v.holds) do
    if i > MAX_HOLDERS then break end
    rows[i] = {v.owner, h.id, string.match(h.who, '\31(.*)$'), h.count, v.notes[h.id] or '', now - h.granted,
      h.deadline - now, 0}
  end
  if v.foreign > 0 and #rows < MAX_HOLDERS then
    rows[#rows + 1] = {v.owner, '', '', v.foreign, '', -1,
      v.foreign_until < math.huge and v.foreign_until - now or -1, 1}
  end
  return rows
end
