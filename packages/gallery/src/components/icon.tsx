import type { Kind } from '../format.ts'

/** SVG paths in a view box of 24 by 24. */
const outlines = {
  upload: 'M12 16V4m0 0L7 9m5-5 5 5M4 16v2.5A1.5 1.5 0 0 0 5.5 20h13a1.5 1.5 0 0 0 1.5-1.5V16',
  folder:
    'M3 18V6.5A1.5 1.5 0 0 1 4.5 5H9l2.5 2.5h8A1.5 1.5 0 0 1 21 9v9a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 18Zm9-7.5v6m0-6-2.5 2.5m2.5-2.5 2.5 2.5',
  inbox:
    'M12 3v8.5m0 0L8.5 8m3.5 3.5L15.5 8M4 13.5V18A1.5 1.5 0 0 0 5.5 19.5h13A1.5 1.5 0 0 0 20 18v-4.5h-5l-1 2.5h-4l-1-2.5Z',
  exit: 'M14 4.5h4A1.5 1.5 0 0 1 19.5 6v12a1.5 1.5 0 0 1-1.5 1.5h-4M10 8l-4 4 4 4m-4-4h9',
  previous: 'm14.5 6-6 6 6 6',
  next: 'm9.5 6 6 6-6 6',
  up: 'm6 14.5 6-6 6 6',
  down: 'm6 9.5 6 6 6-6',
  newest: 'M4 7h9M4 12h6M4 17h3m10.5-10.5V18m0 0 3.5-3.5M17.5 18 14 14.5',
  oldest: 'M4 7h3m-3 5h6m-6 5h9m4.5 1V6.5m0 0L21 10m-3.5-3.5L14 10',
  search: 'm20 20-4.5-4.5m2-5a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z',
  tag: 'M4 4.5h7.5l8.5 8.5-7 7L4 12Zm4.5 4v.01',
  filter: 'M4 6.5h16M7 12h10M10 17.5h4',
  lock: 'M6.5 11h11A1.5 1.5 0 0 1 19 12.5v6a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 5 18.5v-6A1.5 1.5 0 0 1 6.5 11ZM8 11V8a4 4 0 0 1 8 0v3',
  checkAll: 'm3 12.5 4 4L16 7m-4.5 8 1.5 1.5L21.5 7',
  grid: 'M4 5h7v6H4Zm10 0h6v6h-6ZM4 14h5v5H4Zm8 0h8v5h-8Z',
  list: 'M4 6.5h2M4 12h2m-2 5.5h2M10 6.5h10M10 12h10m-10 5.5h10',
  code: 'm8.5 7-5 5 5 5m7-10 5 5-5 5m-2-12-3 14',
  settings:
    'M4 7h9m5 0h2M4 17h2m5 0h9M15.5 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-7 10a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  close: 'm6 6 12 12M18 6 6 18',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  alert: 'M12 8v5m0 3v.01M12 3.5 2.5 20h19Z',
  info: 'M12 11v5m0-8.5v.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  clock: 'M12 7v5l3 2m6-2a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  link: 'M10 14a4 4 0 0 0 5.7 0l3.1-3.1a4 4 0 0 0-5.7-5.7L12 6.3M14 10a4 4 0 0 0-5.7 0l-3.1 3.1a4 4 0 0 0 5.7 5.7L12 17.7',
  download: 'M12 4v12m0 0-5-5m5 5 5-5M4 20h16',
  key: 'M8 19.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.2-7.7L20 3m-4 4 3 3m-6 0 2 2',
  send: 'M20.5 3.5 10.5 13.5m10-10-6.5 17-3.5-7-7-3.5Z',
  trash:
    'M4 6.5h16M9.5 6.5V5A1.5 1.5 0 0 1 11 3.5h2A1.5 1.5 0 0 1 14.5 5v1.5M6 6.5l.8 12.1a1.5 1.5 0 0 0 1.5 1.4h7.4a1.5 1.5 0 0 0 1.5-1.4L18 6.5M10 10.5v5.5m4-5.5v5.5',
  external:
    'M13.5 4.5h6v6m0-6L11 13M17.5 14v4a1.5 1.5 0 0 1-1.5 1.5H6A1.5 1.5 0 0 1 4.5 18V8A1.5 1.5 0 0 1 6 6.5h4',
  pause: 'M9 6v12m6-12v12',
  play: 'M8 5.5v13l10.5-6.5Z',
  retry: 'M19.5 12a7.5 7.5 0 1 1-2.3-5.4M19.5 3.5v4h-4',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12Zm12.5 0a3 3 0 1 1-6 0 3 3 0 0 1 6 0Z',
  eyeOff:
    'M10 5.7a9 9 0 0 1 2-.2c6 0 9.5 6.5 9.5 6.5a16 16 0 0 1-2.9 3.6M6.3 7.3A16 16 0 0 0 2.5 12S6 18.5 12 18.5a9 9 0 0 0 4-.9M9.9 9.9a3 3 0 0 0 4.2 4.2M4 4l16 16',
  unplugged:
    'M3 3l18 18M8.5 16a5 5 0 0 1 6.3-.6M5 12.6a10 10 0 0 1 3.7-2.3m10.3 2.3a10 10 0 0 0-5.3-2.9M2 9a15 15 0 0 1 4.5-2.9M22 9a15 15 0 0 0-11.2-3.9M12 19.5v.01',
  picture:
    'M5 4h14a1.5 1.5 0 0 1 1.5 1.5v13A1.5 1.5 0 0 1 19 20H5a1.5 1.5 0 0 1-1.5-1.5v-13A1.5 1.5 0 0 1 5 4Zm-1.5 12.5 5-5 4 4 2.5-2.5 5.5 5.5M16.5 8.5a1 1 0 1 1-2 0 1 1 0 0 1 2 0Z',
  video:
    'M4.5 6h9A1.5 1.5 0 0 1 15 7.5v9a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 3 16.5v-9A1.5 1.5 0 0 1 4.5 6Zm10.5 4.5 6-3.5v10l-6-3.5',
  audio:
    'M9 17.5V6l11-2v11.5M9 17.5a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0Zm11-2a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0Z',
  pdf: 'M6.5 3h7.5l5 5v11.5A1.5 1.5 0 0 1 17.5 21h-11A1.5 1.5 0 0 1 5 19.5v-15A1.5 1.5 0 0 1 6.5 3ZM14 3v5h5M8.5 17c3-1.5 4-5 3.5-6.5-.8-.8-1.5 2 .5 4.2 1 1.1 2.6 1.3 3.2.8.3-.8-3.7-.8-7.2 1.5Z',
  text: 'M6.5 3h7.5l5 5v11.5A1.5 1.5 0 0 1 17.5 21h-11A1.5 1.5 0 0 1 5 19.5v-15A1.5 1.5 0 0 1 6.5 3ZM14 3v5h5M8.5 12.5h7m-7 4h5',
  archive: 'M4 4.5h16v4H4Zm1 4h14V19a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 5 19Zm5 4h4',
  file: 'M6.5 3h7.5l5 5v11.5A1.5 1.5 0 0 1 17.5 21h-11A1.5 1.5 0 0 1 5 19.5v-15A1.5 1.5 0 0 1 6.5 3ZM14 3v5h5',
} as const satisfies Record<Kind, string> & Record<string, string>

export type IconName = keyof typeof outlines

/** A decorative icon, hidden from screen readers. The element around it needs a text or a label. */
export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={outlines[name]} />
    </svg>
  )
}

/** The logo of the product: a bucket with a picture. */
export function Logo({ size = 28 }: { size?: number }) {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect class="logo-background" width="32" height="32" rx="9" />
      <path class="logo-shape" d="M8 11h16l-1.7 11.2a2.5 2.5 0 0 1-2.5 2.1h-7.6a2.5 2.5 0 0 1-2.5-2.1Z" />
      <circle class="logo-shape" cx="16" cy="7.6" r="1.7" />
      <path class="logo-background" d="m11.4 21 3-3.6 2 2.2 1.8-2 2.6 3.4Z" />
    </svg>
  )
}
