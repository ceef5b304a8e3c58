import { createParameterReader } from './query-parameters.ts'

export const listedUrls = ['plain', 'signed'] as const
export type ListedUrls = (typeof listedUrls)[number]

const isListedUrls = (text: string): text is ListedUrls => listedUrls.some((urls) => urls === text)

/** Reads the parameter `urls` (docs/interface.md H10); null if it is missing. Throws Fault `parameter-malformed`. */
export function readListedUrls(query: Readonly<Record<string, unknown>>): ListedUrls | null {
  const parameters = createParameterReader(query)
  const urls = parameters.read<ListedUrls | null>('urls', null, 'plain or signed', (text) =>
    isListedUrls(text) ? text : null,
  )
  parameters.finish()
  return urls
}

/** Whether the URLs in a response are signed. Those of a public bucket never are. */
export const signsUrls = (
  grant: { readonly isPrivate: boolean; readonly signsPages: boolean },
  urls: ListedUrls | null,
): boolean => (urls === null ? grant.signsPages : urls === 'signed' && grant.isPrivate)
