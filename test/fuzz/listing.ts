import { readPage } from '../harness/wire.ts'
import type { Target } from './target.ts'

/** Reads pages during uploads and deletes: each page is consistent in itself. */
export async function fuzzListing({ random, clients, instance }: Target): Promise<void> {
  let running = true
  async function change(): Promise<void> {
    while (running) {
      const work = random.pick([clients.raw, clients.form, clients.remove])
      const status = await work(instance)
      if (status >= 500) throw new Error(`a client got ${status}`)
    }
  }
  const changes = Promise.all([change(), change()])
  try {
    for (let time = 0; time < 12; time += 1) {
      const number = 1 + random.below(6)
      checkPage(number, await readPage(await instance.server.request(`/api/media?page=${number}`)))
    }
  } finally {
    running = false
    await changes
  }
}

function checkPage(number: number, page: Awaited<ReturnType<typeof readPage>>): void {
  const { current_page, data, from, to, total, last_page, links } = page
  const count = Math.max(0, Math.min(10, total - (number - 1) * 10))
  const first = (number - 1) * 10 + 1
  const isRight =
    current_page === number &&
    data.length === count &&
    new Set(data).size === count &&
    from === (count === 0 ? null : first) &&
    to === (count === 0 ? null : first + count - 1) &&
    last_page === Math.max(1, Math.ceil(total / 10)) &&
    links.length === last_page + 2 &&
    links.filter(({ active }) => active).length === (number <= last_page ? 1 : 0)
  if (!isRight) throw new Error(`page ${number} is not right: ${JSON.stringify(page)}`)
}
