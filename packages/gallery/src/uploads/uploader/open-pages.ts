/** Which pages of this browser are open, so that a page takes over the uploads of those alone that are gone. */
export interface OpenPages {
  /** Those of the pages that nobody answers for. */
  gone(pages: Iterable<string>): Promise<ReadonlySet<string>>
  close(): void
}

interface Message {
  readonly type: 'ask' | 'here'
  readonly page: string
}

/** Milliseconds in which an open page answers. */
const patience = 300

export function createOpenPages(own: string): OpenPages {
  const channel = new BroadcastChannel('mediabucket-uploads')
  const here = new Set<string>()
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === 'here') here.add(data.page)
    else if (data.page === own) channel.postMessage({ type: 'here', page: own } satisfies Message)
  }
  return {
    async gone(pages) {
      const others = new Set(pages)
      if (others.size === 0) return others
      for (const page of others) channel.postMessage({ type: 'ask', page } satisfies Message)
      await new Promise((resolve) => setTimeout(resolve, patience))
      for (const page of here) others.delete(page)
      return others
    },
    close: () => channel.close(),
  }
}
