# The site and the gallery, served as files: docker build -t cellformer . && docker run -p 8080:80 cellformer
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir -e '.[site]' \
    && cellformer build --all --jobs 2 -o gallery \
    && mkdocs build --strict --site-dir /site

FROM nginx:alpine
COPY --from=build /site /usr/share/nginx/html
