# Builds the packages as npm publishes them, and installs them without build tools. See docs/operations/container.md.
FROM node:26-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc tsconfig.json ./
COPY packages packages
RUN npm install --ignore-scripts --no-audit
RUN mkdir /packed /app \
 && for name in gallery server; do npm pack --workspace "packages/$name" --pack-destination /packed; done
RUN npm install --prefix /app --omit=dev --no-audit /packed/*.tgz

FROM node:26-bookworm-slim
# For pictures of videos, PDF and HEIC files: --build-arg PICTURE_PACKAGES="ffmpeg poppler-utils libheif-examples"
ARG PICTURE_PACKAGES=""
RUN if [ -n "$PICTURE_PACKAGES" ]; then apt-get update \
 && apt-get install -y --no-install-recommends $PICTURE_PACKAGES && rm -rf /var/lib/apt/lists/*; fi
ENV NODE_ENV=production MEDIABUCKET_HOST=0.0.0.0 MEDIABUCKET_PORT=8080 MEDIABUCKET_DATA=/data
COPY --from=build /app /app
RUN ln -s /app/node_modules/mediabucket/bin/mediabucket.js /usr/local/bin/mediabucket
RUN install -d -o node -g node -m 700 /data
USER node
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MEDIABUCKET_PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["mediabucket"]
CMD ["serve"]
