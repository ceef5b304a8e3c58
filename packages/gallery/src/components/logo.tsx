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
