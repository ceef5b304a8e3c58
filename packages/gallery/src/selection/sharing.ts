import type { Media } from '@mediabucket/client'
import { strings } from '../strings.ts'
import type { LinkForm, SharingParts } from './share-actions.ts'

/** Copies links of items and downloads items. Never rejects. */
export interface Sharing {
  copyLinks(ids: readonly string[], form?: LinkForm): Promise<void>
  /** Copies links that expire after this many seconds. */
  copyExpiringLinks(ids: readonly string[], seconds: number): Promise<void>
  /** Downloads a file of a private bucket. */
  saveFile(media: Media): Promise<void>
  /** Downloads the files as an archive with this name. */
  downloadZip(ids: readonly string[], filename: string): Promise<void>
}

export function createSharing(parts: SharingParts): Sharing {
  async function perform(
    act: (actions: typeof import('./share-actions.ts')) => Promise<void>,
  ): Promise<void> {
    const actions = await import('./share-actions.ts').catch(() => null)
    if (actions !== null) await act(actions)
    else parts.notices.show(strings.notLoaded, { tone: 'bad' })
  }
  return {
    copyLinks: (ids, form = 'plain') => perform((actions) => actions.copyLinks(parts, ids, form)),
    copyExpiringLinks: (ids, seconds) => perform((actions) => actions.copyExpiringLinks(parts, ids, seconds)),
    saveFile: (media) => perform((actions) => actions.saveFile(parts, media)),
    downloadZip: (ids, filename) => perform((actions) => actions.downloadZip(parts, ids, filename)),
  }
}

export const linkForms = ['plain', 'markdown', 'html'] as const satisfies readonly LinkForm[]
