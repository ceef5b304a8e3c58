import { pageObject } from '../../core/page.ts'
import { exampleBase } from './description.ts'
import type { MediaObject, ValueOf } from './schemas.ts'
import type { UsageObject } from './usage-schemas.ts'

// The values in the examples of the OpenAPI document.

export const sampleItem: ValueOf<typeof MediaObject> = {
  id: 'k92v8d0q3h5wkc9r1n6x7zjy4tam',
  url: `${exampleBase}/media/k92v8d0q3h5wkc9r1n6x7zjy4tam.jpg`,
  filename: 'harbour.jpg',
  content_type: 'image/jpeg',
  size: 48213,
  sha256: '7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069',
  created_at: '2026-11-01T09:30:00.000Z',
  taken_at: '2026-07-19T18:02:11.000+02:00',
  expires_at: null,
  width: null,
  height: null,
  thumbhash: null,
  duration: null,
  alt_text: null,
  caption: null,
  labels: { album: '42', user: '7' },
  path: 'summer/day 1/harbour.jpg',
  focus: { x: 0.3125, y: 0.5 },
  variants: {
    thumb: `${exampleBase}/media/k92v8d0q3h5wkc9r1n6x7zjy4tam.jpg?variant=thumb`,
    medium: `${exampleBase}/media/k92v8d0q3h5wkc9r1n6x7zjy4tam.jpg?variant=medium`,
  },
  variant_sizes: null,
}

export const otherItem: ValueOf<typeof MediaObject> = {
  ...sampleItem,
  taken_at: null,
  variants: null,
  id: '4h9b1e7g0mzq4rx2k8c5n6vwyh3d',
  url: `${exampleBase}/media/4h9b1e7g0mzq4rx2k8c5n6vwyh3d.pdf`,
  filename: 'report.pdf',
  content_type: 'application/pdf',
  width: null,
  height: null,
}

export const sampleLink = {
  url: `${exampleBase}/media/${sampleItem.id}.jpg?expires=1793611800&key=4h9b1e7g0mzq&signature=hZ0Qy3m1b0nq7VtHc1m8H7c6X0S1rJq2kN9vUe4aTtY`,
  expires_at: '2026-11-02T09:30:00.000Z',
}

export const samplePage = pageObject({ baseUrl: exampleBase, extensions: true, links: 'all' }, 2, 12, [
  { id: sampleItem.id, extension: 'jpg' },
  { id: otherItem.id, extension: 'pdf' },
])

export const emptyPage = pageObject({ baseUrl: exampleBase, extensions: true, links: 'all' }, 1, 0, [])

export const sampleUsage: ValueOf<typeof UsageObject> = {
  day: '2026-11-01',
  is_partial: true,
  items: 1204,
  bytes: 5_431_288_190,
  added: { items: 12, bytes: 48_213_220 },
  removed: { items: 1, bytes: 481_302 },
  downloaded_bytes: 912_482_113,
  requests: { list: 310, download: 8211, upload: 12, other: 43 },
}

export const sampleToken = {
  id: 'tok_4k9m2x7c1v8q',
  name: 'backup',
  bucket: 'default',
  scopes: ['media:read'],
  created_at: '2026-11-01T09:30:00.000Z',
  expires_at: '2026-12-01T09:30:00.000Z',
  note: null,
  limits: null,
  uploaded: null,
  left: null,
}

const limitsOfLink = {
  max_items: 20,
  max_bytes: 500_000_000,
  max_file_size: null,
  types: ['image/*'],
  item_days: 90,
  labels: { album: '42' },
}

/** The token of an upload link. */
export const sampleLimitedToken = {
  id: 'tok_9x2k4m7c1v8q',
  name: 'Photos of the harbour festival',
  bucket: 'default',
  scopes: ['media:write'],
  created_at: '2026-11-01T09:30:00.000Z',
  expires_at: '2026-12-01T09:30:00.000Z',
  note: 'Send your best photos of Saturday.',
  limits: limitsOfLink,
  uploaded: { items: 3, bytes: 14_200_000 },
  left: { items: 17, bytes: 485_800_000 },
}

export const sampleCreatedToken = { ...sampleToken, token: 'mbkt_…' }

export const sampleBucket = {
  name: 'default',
  items: 1204,
  bytes: 5_431_288_190,
  reserved_items: 1,
  reserved_bytes: 700_000_000,
  max_items: null,
  max_bytes: 10_000_000_000,
  max_file_size: null,
  types: null,
  trash_days: 30,
  trash_items: 3,
  trash_bytes: 7_340_021,
  private: false,
  signed_pages: false,
  public_keys: false,
  public_list: false,
  url_uploads: true,
  variants: ['card=640x360:cover', 'link=1200x630:cover:jpeg:q80'],
  public_variants: null,
  crop: null,
  remove_metadata: false,
  keep_taken_at: true,
  item_days: null,
}

/** As service tokens get it. */
export const sampleManagedBucket = {
  ...sampleBucket,
  name: 'customer-42',
  created_at: '2026-11-01T09:30:00.000Z',
}
