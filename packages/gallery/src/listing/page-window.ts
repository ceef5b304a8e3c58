/** The page numbers in the pager: the first, the last and those near the current one, null for a gap. At most nine entries. */
export function pageWindow(current: number, last: number): (number | null)[] {
  if (last <= 9) return range(1, last)
  const middle = Math.min(Math.max(current, 1), last)
  if (middle <= 5) return [...range(1, 7), null, last]
  if (middle >= last - 4) return [1, null, ...range(last - 6, last)]
  return [1, null, ...range(middle - 2, middle + 2), null, last]
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)
