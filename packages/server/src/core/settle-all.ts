/** Runs `work` on every item, at most `limit` at once. The results are in the order of the items. */
export async function settleAll<Item, Result>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const results: PromiseSettledResult<Result>[] = []
  const waiting = items.entries()
  async function drain(): Promise<void> {
    for (const [index, item] of waiting) [results[index]] = await Promise.allSettled([work(item)])
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, drain))
  return results
}
